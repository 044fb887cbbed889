#include "tests/lib/allocs.h"

#include "tests/lib/check.h"

static _Thread_local bool armed;
static _Thread_local unsigned long counted;

#if defined(__GLIBC__) && !NP_SANITIZED
#define CAN_COUNT true

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);

void *
malloc(size_t size)
{
	counted += armed;
	return __libc_malloc(size);
}

void *
calloc(size_t n, size_t size)
{
	counted += armed;
	return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t size)
{
	counted += armed;
	return __libc_realloc(p, size);
}
#else
#define CAN_COUNT false
#endif

bool
allocs_counted(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return CAN_COUNT && (preload == NULL || strstr(preload, "vgpreload") == NULL);
}

void
allocs_arm(void)
{
	counted = 0;
	armed = true;
}

unsigned long
allocs_disarm(void)
{
	armed = false;
	return counted;
}
