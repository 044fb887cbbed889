#include "run/live.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

struct np_seat {
	struct np_live *live;
	struct np_seat *next;
	/* Under the lock of live: */
	enum np_live_step step; /* written by its own session alone */
	uint64_t since_ns, length_ns;
	const struct np_run *run; /* NULL: none is under way */
	struct np_counts last;    /* of the one before, then */
};

struct np_live {
	pthread_mutex_t lock;
	struct np_seat *first;
};

struct np_live *
np_live_new(void)
{
	struct np_live *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		pthread_mutex_init(&l->lock, NULL);
	}
	return l;
}

void
np_live_free(struct np_live *l)
{
	if (l != NULL) {
		pthread_mutex_destroy(&l->lock);
		free(l);
	}
}

void
np_live_look(struct np_live *l, struct np_live_view *view)
{
	memset(view, 0, sizeof(*view));
	view->step = NP_LIVE_COLLECTING;
	view->since_ns = NP_NEVER;
	pthread_mutex_lock(&l->lock);
	for (const struct np_seat *s = l->first; s != NULL; s = s->next) {
		struct np_counts count = s->run != NULL ? np_counts_of(s->run) : s->last;

		if (s->step < view->step) {
			view->step = s->step;
			view->since_ns = NP_NEVER;
		}
		if (s->step == view->step && s->since_ns < view->since_ns) {
			view->since_ns = s->since_ns;
		}
		view->length_ns = s->length_ns > view->length_ns ? s->length_ns : view->length_ns;
		np_counts_add(&view->count, &count);
	}
	pthread_mutex_unlock(&l->lock);
}

struct np_seat *
np_live_join(struct np_live *l)
{
	struct np_seat *s = l != NULL ? calloc(1, sizeof(*s)) : NULL;

	if (s == NULL) {
		return NULL;
	}
	s->live = l;
	s->since_ns = np_now();
	pthread_mutex_lock(&l->lock);
	s->next = l->first;
	l->first = s;
	pthread_mutex_unlock(&l->lock);
	return s;
}

void
np_live_leave(struct np_seat *s)
{
	struct np_seat **at;

	if (s == NULL) {
		return;
	}
	pthread_mutex_lock(&s->live->lock);
	for (at = &s->live->first; *at != s; at = &(*at)->next) {
	}
	*at = s->next;
	pthread_mutex_unlock(&s->live->lock);
	free(s);
}

struct np_live *
np_live_of(const struct np_seat *s)
{
	return s != NULL ? s->live : NULL;
}

void
np_live_step(struct np_seat *s, enum np_live_step step)
{
	if (s == NULL || s->step == step) {
		return;
	}
	pthread_mutex_lock(&s->live->lock);
	s->step = step;
	s->since_ns = np_now();
	pthread_mutex_unlock(&s->live->lock);
}

void
np_live_begin(struct np_seat *s, const struct np_run *run, uint64_t length_ns)
{
	if (s != NULL) {
		pthread_mutex_lock(&s->live->lock);
		s->run = run;
		s->length_ns = length_ns;
		pthread_mutex_unlock(&s->live->lock);
	}
}

void
np_live_end(struct np_seat *s)
{
	if (s != NULL) {
		pthread_mutex_lock(&s->live->lock);
		s->last = np_counts_of(s->run);
		s->run = NULL;
		pthread_mutex_unlock(&s->live->lock);
	}
}
