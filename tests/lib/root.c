#include "tests/lib/root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/lib/check.h"

int
root_make(void **state)
{
	char name[] = "/tmp/np-root-XXXXXX";

	*state = mkdtemp(name) != NULL ? strdup(name) : NULL;
	return *state == NULL;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *where)
{
	return remove(path);
}

int
root_remove(void **state)
{
	int rc = nftw(*state, remove_one, 16, FTW_DEPTH | FTW_PHYS);

	free(*state);
	return rc;
}

static void
make_path(char full[PATH_MAX], const char *root, const char *path)
{
	assert_true(snprintf(full, PATH_MAX, "%s%s", root, path) < PATH_MAX);
	for (char *at = strchr(full + strlen(root) + 1, '/'); at != NULL;
	     at = strchr(at + 1, '/')) {
		*at = '\0';
		assert_true(mkdir(full, 0755) == 0 || errno == EEXIST);
		*at = '/';
	}
}

void
put_file(const char *root, const char *path, const char *text)
{
	put_bytes_into(root, path, text, strlen(text));
}

void
put_bytes_into(const char *root, const char *path, const void *bytes, size_t n)
{
	char full[PATH_MAX];
	FILE *f;

	make_path(full, root, path);
	f = fopen(full, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

void
put_link(const char *root, const char *path, const char *to)
{
	char full[PATH_MAX];

	make_path(full, root, path);
	assert_int_equal(symlink(to, full), 0);
}

void
read_file(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ssize_t n = read(fd, text, room - 1);

	assert_true(n >= 0);
	text[n] = '\0';
	close(fd);
}

unsigned
names_in(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned count = 0;

	assert_non_null(d);
	while (readdir(d) != NULL) {
		count++;
	}
	closedir(d);
	return count - 2;
}

void
temp_file(char path[32], const char *text, size_t n, mode_t mode)
{
	int fd;

	strcpy(path, "/tmp/np-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

void
send_over_loopback(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char word[8];

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(sendto(fd, "word", 4, 0, (struct sockaddr *)&at, len), 4);
	assert_int_equal(recv(fd, word, sizeof(word), 0), 4);
	close(fd);
}

void
flood_loopback(int count)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(9),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char bytes[1000] = "";

	assert_true(fd >= 0);
	while (count-- > 0) {
		(void)!sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (const struct sockaddr *)&at,
			      sizeof(at));
	}
	close(fd);
}
