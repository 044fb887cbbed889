/* The interrupts of an interface: its lines in /proc/interrupts. */
#ifndef NP_SYS_IRQ_H
#define NP_SYS_IRQ_H

#include <stdint.h>

struct np_irq {
	int number;
	const char *name; /* as the driver registered it; valid during the call */
	uint64_t count;   /* sum of all processors' 32-bit counters */
};

/*
 * Call `each` for the device's interrupts: by its MSI vectors (/sys/class/net/DEV/device/msi_irqs),
 * or its name or bus address in the line. 0, or a negative errno; -ENOENT: no hardware.
 */
int np_irq_each(const char *root, const char *device,
		void (*each)(void *ctx, const struct np_irq *), void *ctx);

/* Open the list of processors that handle an interrupt. A descriptor, or a negative errno. */
int np_irq_affinity(const char *root, int number);

#endif
