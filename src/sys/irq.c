#include "sys/irq.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fds.h"
#include "base/text.h"
#include "sys/file.h"

/* What shows that an interrupt is a device's: its name, its bus address, or its MSI vectors. */
struct wanted {
	const char *root, *device;
	char bus[64]; /* empty: not known, and in no line */
};

/* Is the interrupt with that number the device's? words: its line after the counters. */
static bool
is_wanted(const struct wanted *w, int number, const char *words)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sys/class/net/%s/device/msi_irqs/%d", w->root, w->device,
		 number);
	/* Not access(2), which a confined session may not call. */
	return np_text_has_word(words, w->device) || np_text_has_word(words, w->bus) ||
	       stat(path, &st) == 0;
}

/*
 * Read a line of /proc/interrupts, and call `each` if it is the device's:
 * " 38:  0  5815 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0"
 */
static void
take_line(char *line, const struct wanted *w, void (*each)(void *ctx, const struct np_irq *),
	  void *ctx)
{
	struct np_irq irq = { .count = 0 };
	char *at = line + strspn(line, " "), *end;
	long number = strtol(at, &end, 10);

	if (end == at || *end != ':' || number < 0 || number > INT_MAX) {
		return;
	}
	for (at = end + 1 + strspn(end + 1, " "); isdigit((unsigned char)*at);
	     at = end + strspn(end, " ")) {
		uint64_t n = strtoull(at, &end, 10);

		if (*end != ' ' && *end != '\0') {
			break; /* "0-edge" is not a count */
		}
		irq.count += n;
	}
	/* The name is the last word. The words before it may contain the bus address. */
	end = line + strlen(line);
	while (end > at && end[-1] == ' ') {
		*--end = '\0';
	}
	while (end > at && end[-1] != ' ') {
		end--;
	}
	irq.number = (int)number;
	irq.name = end;
	if (*end != '\0' && is_wanted(w, irq.number, at)) {
		each(ctx, &irq);
	}
}

int
np_irq_affinity(const char *root, int number)
{
	int fd = np_file_open(root, "/proc/irq/%d/effective_affinity_list", number);
	char first[2];

	/* It is empty if the interrupt controller doesn't tell. */
	if (np_file_again(first, sizeof(first), fd) > 0 && first[0] != '\n') {
		return fd;
	}
	np_fds_close(fd);
	return np_file_open(root, "/proc/irq/%d/smp_affinity_list", number);
}

int
np_irq_each(const char *root, const char *device, void (*each)(void *ctx, const struct np_irq *),
	    void *ctx)
{
	struct wanted w = { .root = root, .device = device };
	char *text, *rest, *line;
	long n = np_file_link(w.bus, sizeof(w.bus), root, "/sys/class/net/%s/device", device);

	if (n < 0) {
		return (int)n;
	}
	text = np_file_all(root, "/proc/interrupts");
	rest = text;
	if (text == NULL) {
		return -errno;
	}
	while ((line = strsep(&rest, "\n")) != NULL) {
		take_line(line, &w, each, ctx);
	}
	free(text);
	return 0;
}
