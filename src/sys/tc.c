#include "sys/tc.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <stdio.h>
#include <string.h>

#include "sys/rtnl.h"

enum {
	ATTRIBUTES = 32, /* those with lower numbers are read */
	DEPTH = 16       /* of classes, most */
};

/*
 * Where a kind's limit, in bytes a second, is: after `head` bytes in attribute `wide` with 64 bits,
 * else at offset `place` of `parms` with 32 bits. 0: no such attribute. (fq's is for each flow.)
 */
static const struct {
	const char *kind;
	size_t head, place;
	unsigned parms, wide;
} shapers[] = {
	{ "tbf", 0, offsetof(struct tc_tbf_qopt, rate.rate), TCA_TBF_PARMS, TCA_TBF_RATE64 },
	{ "htb", 0, offsetof(struct tc_htb_opt, ceil.rate), TCA_HTB_PARMS, TCA_HTB_CEIL64 },
	{ "police", 0, offsetof(struct tc_police, rate.rate), TCA_POLICE_TBF, TCA_POLICE_RATE64 },
	{ "netem", RTA_ALIGN(sizeof(struct tc_netem_qopt)), offsetof(struct tc_netem_rate, rate),
	  TCA_NETEM_RATE, TCA_NETEM_RATE64 },
	{ "cake", 0, 0, 0, TCA_CAKE_BASE_RATE64 },
	{ "fq", 0, 0, TCA_FQ_FLOW_MAX_RATE, 0 },
};

/* The limit that options set, in bits a second; 0: none. */
static uint64_t
rate_of(const char *kind, const struct rtattr *options)
{
	const struct rtattr *at[ATTRIBUTES];
	char parms[128];
	uint32_t narrow = 0;
	uint64_t rate;
	size_t i = 0;

	while (i < sizeof(shapers) / sizeof(shapers[0]) && strcmp(kind, shapers[i].kind) != 0) {
		i++;
	}
	if (i == sizeof(shapers) / sizeof(shapers[0]) || options == NULL ||
	    RTA_PAYLOAD(options) < shapers[i].head) {
		return 0;
	}
	np_rtnl_sort((const char *)RTA_DATA(options) + shapers[i].head,
		     RTA_PAYLOAD(options) - shapers[i].head, at, ATTRIBUTES);
	if (shapers[i].wide != 0 && np_rtnl_take(at[shapers[i].wide], &rate, sizeof(rate))) {
		return 8 * rate;
	}
	if (shapers[i].parms != 0 && np_rtnl_take(at[shapers[i].parms], parms, sizeof(parms))) {
		memcpy(&narrow, parms + shapers[i].place, sizeof(narrow));
	}
	return narrow == UINT32_MAX ? 0 : 8 * (uint64_t)narrow; /* all ones: fq has no limit */
}

/* htb's class for traffic that no filter classifies; 0: none. */
static uint32_t
htb_default(const struct rtattr *options)
{
	const struct rtattr *at[TCA_HTB_INIT + 1];
	struct tc_htb_glob init = { .version = 0 };

	np_rtnl_sort_nested(options, at, TCA_HTB_INIT + 1);
	np_rtnl_take(at[TCA_HTB_INIT], &init, sizeof(init));
	return init.defcls;
}

/* The counters of an item; 0 where it has none. */
static void
take_counts(const struct rtattr *stats2, struct np_tc_item *item)
{
	const struct rtattr *at[TCA_STATS_MAX + 1];
	struct gnet_stats_basic basic = { .packets = 0 };
	struct gnet_stats_queue queue = { .drops = 0 };

	np_rtnl_sort_nested(stats2, at, TCA_STATS_MAX + 1);
	np_rtnl_take(at[TCA_STATS_BASIC], &basic, sizeof(basic));
	item->has_queue = np_rtnl_take(at[TCA_STATS_QUEUE], &queue, sizeof(queue));
	item->bytes = basic.bytes;
	item->packets = basic.packets;
	item->drops = queue.drops;
	item->overlimits = queue.overlimits;
	item->requeues = queue.requeues;
	item->backlog = queue.backlog;
}

/* The next free item; add_item() keeps it. NULL: there is no room. */
static struct np_tc_item *
new_item(struct np_tc *tc)
{
	struct np_tc_item *item = &tc->at[tc->count];

	if (tc->count == NP_TC_ITEMS) {
		tc->left_out++;
		return NULL;
	}
	memset(item, 0, sizeof(*item));
	item->in = tc->in;
	return item;
}

/* The item of that name; NULL: there is none. */
static const struct np_tc_item *
find(const struct np_tc *tc, const char *name)
{
	for (size_t i = 0; i < tc->count; i++) {
		if (strcmp(tc->at[i].name, name) == 0) {
			return &tc->at[i];
		}
	}
	return NULL;
}

/* Keep the item, unless one has its name: a shared action, which counts once. */
static void
add_item(struct np_tc *tc, struct np_tc_item *item)
{
	np_bag_clean_name(item->name);
	tc->count += find(tc, item->name) == NULL;
}

/* Note the root and its limit. All classes of htb pass here, even without room; the root first. */
static void
note_root_rate(struct np_tc *tc, const struct tcmsg *body, const struct rtattr *const *at,
	       bool is_class)
{
	char kind[32];
	uint64_t rate;

	np_rtnl_take_text(at[TCA_KIND], kind, sizeof(kind));
	if (tc->in || at[TCA_OPTIONS] == NULL) {
		return;
	}
	if (!is_class && body->tcm_parent == TC_H_ROOT) {
		tc->root = body->tcm_handle;
		tc->htb_default = strcmp(kind, "htb") == 0 ? htb_default(at[TCA_OPTIONS]) : 0;
		tc->root_rate_bps = strcmp(kind, "tbf") == 0 ? rate_of(kind, at[TCA_OPTIONS]) : 0;
	}
	if (!is_class || strcmp(kind, "htb") != 0 ||
	    TC_H_MAJ(body->tcm_handle) != TC_H_MAJ(tc->root)) {
		return;
	}
	rate = rate_of(kind, at[TCA_OPTIONS]);
	if (tc->htb_default != 0 ? TC_H_MIN(body->tcm_handle) == tc->htb_default
				 : body->tcm_parent == TC_H_ROOT && rate > tc->root_rate_bps) {
		tc->root_rate_bps = rate;
	}
}

/* A queueing discipline, or a class of htb. Returns 1 if it was used, as an np_rtnl_handler. */
static int
read_queue(struct np_tc *tc, const struct nlmsghdr *m, const struct tcmsg *body, bool is_class)
{
	const struct rtattr *at[ATTRIBUTES];
	struct np_tc_item *item;
	uint32_t handle;
	char name[NP_TC_NAME];

	np_rtnl_sort(TCA_RTA(body), TCA_PAYLOAD(m), at, ATTRIBUTES);
	note_root_rate(tc, body, at, is_class);
	if (at[TCA_KIND] == NULL || (item = new_item(tc)) == NULL) {
		return 0;
	}
	np_rtnl_take_text(at[TCA_KIND], item->kind, sizeof(item->kind));
	if (is_class && strcmp(item->kind, "htb") != 0) {
		return 0; /* classes of other kinds show in their queues */
	}
	item->is_class = is_class;
	item->handle = body->tcm_handle;
	item->parent = body->tcm_parent;
	if (!is_class && body->tcm_parent == TC_H_INGRESS) {
		item->in = true;
		item->counted = strcmp(item->kind, "ingress") == 0; /* clsact: both ways */
	} else {
		item->counted = !is_class && body->tcm_parent == TC_H_ROOT;
	}
	item->rate_bps = rate_of(item->kind, at[TCA_OPTIONS]);
	/* Don't let the many queues of mq take the half of the room that is for other kinds. */
	if (tc->count >= NP_TC_ITEMS / 2 && !item->counted && !item->in && !item->is_class &&
	    item->rate_bps == 0) {
		tc->left_out++;
		return 1;
	}
	take_counts(at[TCA_STATS2], item);
	/* The name has the handle, or the parent's if there is none, as for queues of mq. */
	handle = item->handle != 0 ? item->handle : item->parent;
	snprintf(name, sizeof(name), "%s%s_%x_%x", tc->also, item->kind, TC_H_MAJ(handle) >> 16,
		 TC_H_MIN(handle));
	memcpy(item->name, name, sizeof(name));
	add_item(tc, item);
	return 1;
}

/* The attribute of a classifier that holds its actions; 0: not known. */
static unsigned
actions_of(const char *kind)
{
	static const struct {
		const char *kind;
		unsigned attribute;
	} known[] = {
		{ "u32", TCA_U32_ACT }, { "matchall", TCA_MATCHALL_ACT },
		{ "fw", TCA_FW_ACT },   { "flower", TCA_FLOWER_ACT },
		{ "bpf", TCA_BPF_ACT }, { "basic", TCA_BASIC_ACT },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(kind, known[i].kind) == 0) {
			return known[i].attribute;
		}
	}
	return 0;
}

/* An action of a filter. If it redirects input to another interface (ifb), tc->ifb is set. */
static void
read_action(struct np_tc *tc, const struct rtattr *action)
{
	const struct rtattr *at[TCA_ACT_STATS + 1], *options[ATTRIBUTES];
	struct np_tc_item *item = new_item(tc);
	char name[NP_TC_NAME];
	uint32_t number = 0;

	np_rtnl_sort_nested(action, at, TCA_ACT_STATS + 1);
	if (at[TCA_ACT_KIND] == NULL || item == NULL) {
		return;
	}
	np_rtnl_take_text(at[TCA_ACT_KIND], item->kind, sizeof(item->kind));
	item->is_action = true;
	item->counted = tc->counted;
	item->rate_bps = rate_of(item->kind, at[TCA_ACT_OPTIONS]);
	take_counts(at[TCA_ACT_STATS], item);
	/* Its parameters begin with its number. Most kinds have them where mirred has. */
	np_rtnl_sort_nested(at[TCA_ACT_OPTIONS], options, ATTRIBUTES);
	np_rtnl_take(options[strcmp(item->kind, "police") == 0 ? TCA_POLICE_TBF : TCA_MIRRED_PARMS],
		     &number, sizeof(number));
	snprintf(name, sizeof(name), "%s%s_%u", tc->also, item->kind, number);
	memcpy(item->name, name, sizeof(name));
	if (strcmp(item->kind, "mirred") == 0) {
		struct tc_mirred parms = { .index = 0 };

		if (np_rtnl_take(options[TCA_MIRRED_PARMS], &parms, sizeof(parms)) && tc->in &&
		    parms.eaction == TCA_EGRESS_REDIR && (int)parms.ifindex != tc->index) {
			tc->ifb = (int)parms.ifindex;
		}
	}
	add_item(tc, item);
}

/* The actions of a filter. Returns 1 if its kind is known, else 0. */
static int
read_filter(struct np_tc *tc, const struct nlmsghdr *m, const struct tcmsg *body)
{
	const struct rtattr *at[ATTRIBUTES], *options[ATTRIBUTES];
	const struct rtattr *actions[TCA_ACT_MAX_PRIO + 1];
	unsigned attribute;
	char kind[32];

	np_rtnl_sort(TCA_RTA(body), TCA_PAYLOAD(m), at, ATTRIBUTES);
	np_rtnl_take_text(at[TCA_KIND], kind, sizeof(kind));
	attribute = actions_of(kind);
	if (attribute == 0) {
		return 0;
	}
	np_rtnl_sort_nested(at[TCA_OPTIONS], options, ATTRIBUTES);
	np_rtnl_sort_nested(options[attribute], actions, TCA_ACT_MAX_PRIO + 1);
	for (unsigned i = 1; i <= TCA_ACT_MAX_PRIO; i++) {
		if (actions[i] != NULL) {
			read_action(tc, actions[i]);
		}
	}
	return 1;
}

int
np_tc_handle(void *ctx, const struct nlmsghdr *m)
{
	const struct tcmsg *body = NLMSG_DATA(m);
	struct np_tc *tc = ctx;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*body)) || body->tcm_ifindex != tc->index) {
		return 0;
	}
	switch (m->nlmsg_type) {
	case RTM_NEWQDISC:
		return read_queue(tc, m, body, false);
	case RTM_NEWTCLASS:
		return read_queue(tc, m, body, true);
	case RTM_NEWTFILTER:
		return read_filter(tc, m, body);
	default:
		return 0;
	}
}

static bool
has_kind(const struct np_tc *tc, const char *kind)
{
	for (size_t i = 0; i < tc->count; i++) {
		if (strcmp(tc->at[i].kind, kind) == 0) {
			return true;
		}
	}
	return false;
}

/* Read all messages of a type (RTM_GET...) into tc; it is no error if there are none. */
static int
dump(int fd, uint16_t type, uint32_t parent, struct np_tc *tc)
{
	int rc = np_rtnl_dump_tc(fd, type, tc->index, parent, np_tc_handle, tc);

	return rc == -ENOENT ? 0 : rc;
}

/* Read queues and classes. (Kernels since 6.8 tell of one alone only to listeners.) */
static int
read_queues(int fd, struct np_tc *tc)
{
	int rc = dump(fd, RTM_GETQDISC, 0, tc);

	return rc == 0 && has_kind(tc, "htb") ? dump(fd, RTM_GETTCLASS, 0, tc) : rc;
}

int
np_tc_queues(int fd, int index, struct np_tc *out)
{
	memset(out, 0, sizeof(*out));
	out->also = "";
	out->index = index;
	return read_queues(fd, out);
}

int
np_tc_read(int fd, int index, struct np_tc *out)
{
	int rc = np_tc_queues(fd, index, out);

	if (rc == 0 && out->count > 0) {
		rc = dump(fd, RTM_GETTFILTER, 0, out); /* of the root, which counts the drops */
	}
	out->counted = has_kind(out, "clsact");
	if (rc == 0 && out->counted) {
		rc = dump(fd, RTM_GETTFILTER, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), out);
	}
	out->in = true;
	if (rc == 0 && (out->counted || has_kind(out, "ingress"))) {
		rc = dump(fd, RTM_GETTFILTER, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), out);
	}
	if (rc == 0 && out->ifb != 0) { /* input waits there: out->in stays true */
		out->also = "ifb_";
		out->index = out->ifb;
		rc = read_queues(fd, out);
	}
	return rc;
}

const struct np_tc_item *
np_tc_root(const struct np_tc *tc)
{
	for (size_t i = 0; i < tc->count; i++) {
		const struct np_tc_item *item = &tc->at[i];

		if (!item->is_class && !item->is_action && !item->in && item->parent == TC_H_ROOT) {
			return item;
		}
	}
	return NULL;
}

/* Put by how much a counter has grown, if it has. */
static void
put(struct np_bag *into, uint64_t by, const char *name, const char *what)
{
	if (by > 0 && by <= INT64_MAX) {
		np_bag_int(into, (int64_t)by, "moved.tc.%s.%s", name, what);
	}
}

/* How much an item's counters grew. If it was made anew, they began at 0. */
static struct np_tc_item
difference(const struct np_tc *from, const struct np_tc_item *now)
{
	const struct np_tc_item *before = find(from, now->name);
	struct np_tc_item d = *now;

	if (before != NULL && before->bytes <= now->bytes && before->packets <= now->packets) {
		d.bytes -= before->bytes;
		d.packets -= before->packets;
		d.drops -= before->drops; /* right even if the 32 bits have wrapped */
		d.overlimits -= before->overlimits;
		d.requeues -= before->requeues;
	}
	return d;
}

/* The smallest limit of a class and all classes above it, in bits/s; 0: none has one. */
static uint64_t
class_rate(const struct np_tc *tc, const struct np_tc_item *c)
{
	uint64_t least = c->rate_bps;

	for (int depth = 0; depth < DEPTH && c != NULL; depth++) {
		const struct np_tc_item *up = NULL;

		for (size_t i = 0; i < tc->count && up == NULL; i++) {
			const struct np_tc_item *at = &tc->at[i];

			up = at->is_class && at->in == c->in && at->handle == c->parent ? at : NULL;
		}
		c = up;
		if (c != NULL && c->rate_bps > 0 && (least == 0 || c->rate_bps < least)) {
			least = c->rate_bps;
		}
	}
	return least;
}

/* The totals of one direction. */
struct way {
	uint64_t rate_bps, drops, overlimits;
	uint64_t class_bytes, class_rate_bps; /* of the leaf class with the most bytes so far */
	char kind[32]; /* of the item with that limit, else of the first counted one; empty: none */
	bool any;      /* there is an item */
};

/*
 * An item's rate limit in bits/s; 0: none. The test is assumed to be in the htb leaf with the most
 * bytes, so a class counts only if it is a leaf with more than those before (w->class_bytes).
 */
static uint64_t
limit_of(const struct np_tc *tc, const struct np_tc_item *d, struct way *w)
{
	if (!d->is_class) {
		return d->rate_bps;
	}
	for (size_t i = 0; i < tc->count; i++) {
		if (tc->at[i].is_class && tc->at[i].in == d->in && tc->at[i].parent == d->handle) {
			return 0; /* it has classes below it */
		}
	}
	if (d->bytes <= w->class_bytes) {
		return 0;
	}
	w->class_bytes = d->bytes;
	return class_rate(tc, d);
}

/* Add an item to the sums of its direction. */
static void
add(const struct np_tc *to, const struct np_tc_item *d, struct way *w)
{
	uint64_t limit = limit_of(to, d, w);

	w->any = true;
	w->drops += d->counted ? d->drops : 0;
	/* Overlimits of a class are also its queue's; those of other actions mean other things. */
	if (!d->is_class && (!d->is_action || strcmp(d->kind, "police") == 0)) {
		w->overlimits += d->overlimits;
	}
	if (d->is_class && limit > 0) {
		w->class_rate_bps = limit;
	} else if (limit > 0 && (w->rate_bps == 0 || limit < w->rate_bps)) {
		w->rate_bps = limit;
		memcpy(w->kind, d->kind, sizeof(w->kind));
	} else if (w->rate_bps == 0 && d->counted && w->kind[0] == '\0') {
		memcpy(w->kind, d->kind, sizeof(w->kind));
	}
}

/* Put drops, overlimits and the lowest limit of each direction. */
static void
put_ways(const struct np_tc *from, const struct np_tc *to, struct np_bag *into)
{
	static const char *const names[] = { "out", "in" };

	for (int in = 0; in < 2; in++) {
		struct way w = { .kind = "" };

		for (size_t i = 0; i < to->count; i++) {
			struct np_tc_item d = difference(from, &to->at[i]);

			if (d.in == (in == 1)) {
				add(to, &d, &w);
			}
		}
		if (w.class_rate_bps > 0 && (w.rate_bps == 0 || w.class_rate_bps < w.rate_bps)) {
			w.rate_bps = w.class_rate_bps;
			snprintf(w.kind, sizeof(w.kind), "htb");
		}
		if (w.any) {
			np_bag_int(into, (int64_t)w.drops, "tc.%s.drops", names[in]);
			np_bag_int(into, (int64_t)w.overlimits, "tc.%s.overlimits", names[in]);
		}
		if (w.kind[0] != '\0') {
			np_bag_text(into, w.kind, "tc.%s.kind", names[in]);
		}
		if (w.rate_bps > 0 && w.rate_bps <= INT64_MAX) {
			np_bag_int(into, (int64_t)w.rate_bps, "tc.%s.rate_bps", names[in]);
		}
	}
}

void
np_tc_put(const struct np_tc *from, const struct np_tc *to, struct np_bag *into)
{
	for (size_t i = 0; i < to->count; i++) {
		struct np_tc_item d = difference(from, &to->at[i]);

		put(into, d.bytes, d.name, "bytes");
		put(into, d.packets, d.name, "packets");
		put(into, d.drops, d.name, "drops");
		put(into, d.overlimits, d.name, "overlimits");
		put(into, d.requeues, d.name, "requeues");
	}
	put_ways(from, to, into);
	if (to->left_out > 0) {
		char why[64];

		snprintf(why, sizeof(why), "no room for %zu more", to->left_out);
		np_bag_unread(into, why, "moved.tc");
	}
}
