/*
 * The interrupts of an interface: its lines in /proc/interrupts.
 */
#ifndef NP_SYS_IRQ_H
#define NP_SYS_IRQ_H

#include <stdint.h>

struct np_irq {
	int number;
	const char *name; /* as the driver registered it; valid during the call */
	uint64_t count;   /* of all processors: sums of 32-bit counters */
};

/*
 * Call `each` for the device's lines: those with a number among its MSI vectors
 * (/sys/class/net/DEV/device/msi_irqs), or with its name or its bus address as a word in their
 * name. A device without hardware has none, for which nothing is read. 0, or a negative errno;
 * -ENOENT for a device that sysfs does not know as one of hardware.
 */
int np_irq_each(const char *root, const char *device,
		void (*each)(void *ctx, const struct np_irq *), void *ctx);

/*
 * The file that lists the processors which handle this interrupt, for np_file_again(): a
 * descriptor, or a negative errno.
 */
int np_irq_affinity(const char *root, int number);

#endif
