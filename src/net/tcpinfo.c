/* linux/tcp.h and netinet/tcp.h can't be included together, hence a file of its own. */
#include "net/tcpinfo.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

uint64_t
np_tcp_moved(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0) {
		return 0;
	}
	return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}
