#include "sys/boot.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/file.h"

/* Of the id, enough to tell machines apart, and too little to find one elsewhere. */
enum { DIGITS = 8 };

/* "time:[4026531834]": another namespace may have an offset of its own (time_namespaces(7)). */
static unsigned long
time_namespace(const char *root)
{
	static const char prefix[] = "time:[";
	char path[PATH_MAX], link[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/self/ns/time", root);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < (ssize_t)sizeof(prefix) || strncmp(link, prefix, sizeof(prefix) - 1) != 0) {
		return 0; /* a kernel without them */
	}
	link[n] = '\0';
	return strtoul(link + sizeof(prefix) - 1, NULL, 10);
}

void
np_boot_put(const char *root, struct np_bag *into)
{
	char id[64], text[96], why[128];
	long n;

	root = root != NULL ? root : "";
	n = np_file_line(id, sizeof(id), root, "/proc/sys/kernel/random/boot_id");
	if (n < DIGITS) {
		snprintf(why, sizeof(why), "/proc/sys/kernel/random/boot_id: %s",
			 n < 0 ? strerror((int)-n) : "too short");
		np_bag_unread(into, why, "clock.boot");
		return;
	}
	snprintf(text, sizeof(text), "%.*s-%lu", DIGITS, id, time_namespace(root));
	np_bag_text(into, text, "clock.boot");
}
