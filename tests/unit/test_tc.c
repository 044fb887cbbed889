/*
 * Traffic control, from messages as the kernel composes them: kinds that this kernel may not have
 * (policers, cake, netem, fq) are judged as well as those that it has.
 */
#include "sys/tc.h"

#include <linux/gen_stats.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_gact.h>
#include <linux/tc_act/tc_mirred.h>

#include "sys/rtnl.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { DEVICE = 7, IFB = 9, ROOM = 2048 };

/* A message in the making. */
struct message {
	union {
		struct nlmsghdr head;
		char room[ROOM];
	};
};

static struct tcmsg *
begin(struct message *m, uint16_t type, uint32_t handle, uint32_t parent)
{
	struct tcmsg *body;

	memset(m, 0, sizeof(*m));
	m->head.nlmsg_len = NLMSG_LENGTH(sizeof(*body));
	m->head.nlmsg_type = type;
	body = NLMSG_DATA(&m->head);
	body->tcm_ifindex = DEVICE;
	body->tcm_handle = handle;
	body->tcm_parent = parent;
	return body;
}

/* Returns the attribute, whose length nest_end() completes when more is put into it. */
static struct rtattr *
put(struct message *m, unsigned short type, const void *data, size_t size)
{
	struct rtattr *a = (struct rtattr *)(m->room + NLMSG_ALIGN(m->head.nlmsg_len));

	assert_true((size_t)((char *)a - m->room) + RTA_SPACE(size) <= ROOM);
	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size > 0) {
		memcpy(RTA_DATA(a), data, size);
	}
	m->head.nlmsg_len = NLMSG_ALIGN(m->head.nlmsg_len) + (uint32_t)RTA_ALIGN(a->rta_len);
	return a;
}

static void
nest_end(struct message *m, struct rtattr *a)
{
	a->rta_len = (unsigned short)(m->room + m->head.nlmsg_len - (char *)a);
}

static void
put_text(struct message *m, unsigned short type, const char *text)
{
	put(m, type, text, strlen(text) + 1);
}

static void
put_stats(struct message *m, unsigned short type, uint64_t bytes, uint32_t drops)
{
	const struct gnet_stats_basic basic = { .bytes = bytes, .packets = (uint32_t)bytes / 1000 };
	const struct gnet_stats_queue queue = { .drops = drops, .overlimits = drops * 2 };
	struct rtattr *a = put(m, type, NULL, 0);

	put(m, TCA_STATS_BASIC, &basic, sizeof(basic));
	put(m, TCA_STATS_QUEUE, &queue, sizeof(queue));
	nest_end(m, a);
}

static void
hear(struct np_tc *tc, const struct message *m)
{
	assert_int_equal(np_tc_handle(tc, &m->head), 1);
}

static struct np_tc *
empty(void)
{
	struct np_tc *tc = calloc(1, sizeof(*tc));

	assert_non_null(tc);
	tc->index = DEVICE;
	tc->also = "";
	return tc;
}

/* ---- what may stand at an interface ---- */

/* A queueing discipline whose rate is in an attribute, behind a head of `head` bytes. */
static void
queue(struct np_tc *tc, const char *kind, uint32_t handle, uint32_t parent, size_t head,
      unsigned short type, const void *rate, size_t size, uint64_t bytes, uint32_t drops)
{
	static const char zeros[256];
	struct rtattr *options;
	struct message m;

	begin(&m, RTM_NEWQDISC, handle, parent);
	put_text(&m, TCA_KIND, kind);
	options = put(&m, TCA_OPTIONS, zeros, head);
	if (size > 0) {
		put(&m, type, rate, size);
	}
	nest_end(&m, options);
	put_stats(&m, TCA_STATS2, bytes, drops);
	hear(tc, &m);
}

static void
class_message(struct message *m, uint32_t handle, uint32_t parent, uint32_t ceiling, uint64_t bytes)
{
	const struct tc_htb_opt parms = { .ceil.rate = ceiling };
	struct rtattr *options;

	begin(m, RTM_NEWTCLASS, handle, parent);
	put_text(m, TCA_KIND, "htb");
	options = put(m, TCA_OPTIONS, NULL, 0);
	put(m, TCA_HTB_PARMS, &parms, sizeof(parms));
	nest_end(m, options);
	put_stats(m, TCA_STATS2, bytes, 0);
}

static void class(struct np_tc *tc, uint32_t handle, uint32_t parent, uint32_t ceiling,
		  uint64_t bytes)
{
	struct message m;

	class_message(&m, handle, parent, ceiling, bytes);
	hear(tc, &m);
}

/* A filter with one action, whose parameters are in an attribute. */
static void
filter(struct np_tc *tc, const char *classifier, unsigned short actions, const char *action,
       unsigned short type, const void *parms, size_t size, uint32_t drops)
{
	struct rtattr *options, *all, *one, *own;
	struct message m;

	begin(&m, RTM_NEWTFILTER, 1, 0xfffffff2);
	put_text(&m, TCA_KIND, classifier);
	options = put(&m, TCA_OPTIONS, NULL, 0);
	all = put(&m, actions, NULL, 0);
	one = put(&m, 1, NULL, 0);
	put_text(&m, TCA_ACT_KIND, action);
	put_stats(&m, TCA_ACT_STATS, 100000, drops);
	own = put(&m, TCA_ACT_OPTIONS | NLA_F_NESTED, NULL, 0);
	put(&m, type, parms, size);
	nest_end(&m, own);
	nest_end(&m, one);
	nest_end(&m, all);
	nest_end(&m, options);
	hear(tc, &m);
}

static void
police(struct np_tc *tc, const char *classifier, unsigned short actions, uint32_t rate,
       uint32_t drops)
{
	const struct tc_police parms = { .index = 5, .rate.rate = rate };

	filter(tc, classifier, actions, "police", TCA_POLICE_TBF, &parms, sizeof(parms), drops);
}

static struct np_bag *
moved(struct np_tc *from, struct np_tc *to)
{
	struct np_bag *b = np_bag_new();

	np_tc_put(from, to, b);
	free(from);
	free(to);
	return b;
}

/* ---- tests ---- */

TEST(every_kind_tells_its_rate)
{
	const struct tc_tbf_qopt tbf = { .rate.rate = 1250000 };
	const struct tc_netem_rate netem = { .rate = 125000 };
	const uint64_t cake = 2500000, tbf64 = 5000000000;
	const uint32_t fq = 375000, no_fq = UINT32_MAX;
	const struct {
		const char *kind;
		size_t head;
		unsigned short type;
		const void *rate;
		size_t size;
		double bps; /* 0: none */
	} rows[] = {
		{ "tbf", 0, TCA_TBF_PARMS, &tbf, sizeof(tbf), 10e6 },
		{ "tbf", 0, TCA_TBF_RATE64, &tbf64, sizeof(tbf64), 40e9 },
		{ "netem", RTA_ALIGN(sizeof(struct tc_netem_qopt)), TCA_NETEM_RATE, &netem,
		  sizeof(netem), 1e6 },
		{ "cake", 0, TCA_CAKE_BASE_RATE64, &cake, sizeof(cake), 20e6 },
		{ "fq", 0, TCA_FQ_FLOW_MAX_RATE, &fq, sizeof(fq), 3e6 },
		{ "fq", 0, TCA_FQ_FLOW_MAX_RATE, &no_fq, sizeof(no_fq), 0 },
		{ "fq_codel", 0, 0, NULL, 0, 0 },
		{ "netem", 0, 0, NULL, 0, 0 }, /* its head cut off */
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_tc *from = empty(), *to = empty();
		FREED_BY(free_bag) struct np_bag *b = NULL;

		queue(from, rows[i].kind, 0x10000, TC_H_ROOT, rows[i].head, rows[i].type,
		      rows[i].rate, rows[i].size, 1000, 1);
		queue(to, rows[i].kind, 0x10000, TC_H_ROOT, rows[i].head, rows[i].type,
		      rows[i].rate, rows[i].size, 51000, 4);
		b = moved(from, to);
		assert_bag(b, "tc.", "out.kind='%s' out.drops=3 out.overlimits=6 in.drops=none",
			   rows[i].kind);
		if (rows[i].bps > 0) {
			assert_number(b, "tc.out.rate_bps", rows[i].bps);
		} else {
			assert_bag(b, "", "tc.out.rate_bps=none");
		}
	}
}

/* Each by its name, and drops once: the root has those of what is below. */
TEST(queues_below_are_named_and_not_added)
{
	const struct tc_tbf_qopt tbf = { .rate.rate = 1250000 };
	struct np_tc *from = empty(), *to = empty();
	FREED_BY(free_bag) struct np_bag *b = NULL;

	for (int i = 0; i < 2; i++) {
		struct np_tc *tc = i == 0 ? from : to;
		uint32_t drops = i == 0 ? UINT32_MAX : 9;

		queue(tc, "mq", 0, TC_H_ROOT, 0, 0, NULL, 0, 100 + 900 * i, drops);
		queue(tc, "fq_codel", 0, 1, 0, 0, NULL, 0, 100 + 500 * i, 0);
		queue(tc, "tbf", 0xa0000, 2, 0, TCA_TBF_PARMS, &tbf, sizeof(tbf), 100 + 400 * i,
		      drops);
	}
	b = moved(from, to);
	/* 32 bits wrap. */
	assert_bag(b, "moved.tc.",
		   "fq_codel_0_1.bytes=500 fq_codel_0_1.drops=none tbf_a_0.bytes=400 "
		   "tbf_a_0.drops=10");
	assert_bag(b, "tc.out.", "drops=10 kind='tbf' rate_bps=10e6");
}

/* What htb lets through is its default class, or the largest below the root where it has none. */
TEST(the_root_is_found_with_its_rate)
{
	static const struct {
		uint32_t by_default;
		double bps;
	} rows[] = { { 0, 160e6 }, { 0x20, 40e6 }, { 0x99, 0 } };
	const struct tc_tbf_qopt tbf = { .rate.rate = 1250000 };
	const struct tc_netem_rate netem = { .rate = 125000 };
	struct np_tc *tc = empty();
	struct message m;

	assert_null(np_tc_root(tc));
	assert_int_equal(tc->root_rate_bps, 0);
	queue(tc, "fq_codel", 0xb0000, 0x10001, 0, 0, NULL, 0, 1, 0);
	assert_null(np_tc_root(tc));
	queue(tc, "tbf", 0xa0000, TC_H_ROOT, 0, TCA_TBF_PARMS, &tbf, sizeof(tbf), 100, 7);
	assert_string_equal(np_tc_root(tc)->kind, "tbf");
	assert_true(np_tc_root(tc)->has_queue && np_tc_root(tc)->drops == 7);
	assert_int_equal(tc->root_rate_bps, 10000000);
	free(tc);
	tc = empty();
	queue(tc, "netem", 0xa0000, TC_H_ROOT, sizeof(struct tc_netem_qopt), TCA_NETEM_RATE, &netem,
	      sizeof(netem), 1, 0);
	assert_string_equal(np_tc_root(tc)->kind, "netem");
	assert_int_equal(tc->root_rate_bps, 0);
	free(tc);
	for (size_t i = 0; i < LEN(rows); i++) {
		const struct tc_htb_glob init = { .defcls = rows[i].by_default };

		tc = empty();
		queue(tc, "htb", 0x10000, TC_H_ROOT, 0, TCA_HTB_INIT, &init, sizeof(init), 1, 0);
		for (uint32_t n = 0x1000; n < 0x1000 + 2 * NP_TC_ITEMS; n++) {
			class_message(&m, 0x10000 | n, 0x10001, 1000, 1);
			np_tc_handle(tc, &m.head); /* for most there is no room */
		}
		class_message(&m, 0x10001, TC_H_ROOT, 20000000, 1);
		np_tc_handle(tc, &m.head);
		class_message(&m, 0x10020, 0x10001, 5000000, 1);
		np_tc_handle(tc, &m.head);
		class_message(&m, 0x20020, TC_H_ROOT, 80000000, 1); /* another tree's */
		np_tc_handle(tc, &m.head);
		assert_int_equal(tc->root_rate_bps, rows[i].bps);
		free(tc);
	}
}

/* That which took the bytes is the class of this test, however small another one is. */
TEST(the_class_that_moved_tells_the_rate)
{
	struct np_tc *from = empty(), *to = empty();
	FREED_BY(free_bag) struct np_bag *b = NULL;

	for (int i = 0; i < 2; i++) {
		struct np_tc *tc = i == 0 ? from : to;

		queue(tc, "htb", 0x10000, TC_H_ROOT, 0, 0, NULL, 0, i * 90000, 0);
		class(tc, 0x10001, TC_H_ROOT, 2000000, i * 90000);
		class(tc, 0x10010, 0x10001, 1000, i * 100);
		class(tc, 0x10020, 0x10001, 3000000, i * 89000);
		class(tc, 0x10030, 0x10001, 1000000, i * 900);
	}
	b = moved(from, to);
	/* The rate is that of the class above it. */
	assert_bag(b, "", "tc.out.kind='htb' tc.out.rate_bps=16e6 moved.tc.htb_1_20.bytes=89000");
}

/* At the ingress queue, which counts what they drop; at clsact, where they count for themselves. */
TEST(policers_are_found_by_any_classifier)
{
	static const struct {
		const char *classifier;
		unsigned short actions;
		bool clsact;
	} rows[] = {
		{ "u32", TCA_U32_ACT, false },           { "matchall", TCA_MATCHALL_ACT, true },
		{ "flower", TCA_FLOWER_ACT, true },      { "bpf", TCA_BPF_ACT, true },
		{ "basic", TCA_BASIC_ACT, false },       { "fw", TCA_FW_ACT, false },
		{ "matchall", TCA_MATCHALL_ACT, false },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_tc *from = empty(), *to = empty();
		FREED_BY(free_bag) struct np_bag *b = NULL;

		for (int n = 0; n < 2; n++) {
			struct np_tc *tc = n == 0 ? from : to;

			queue(tc, rows[i].clsact ? "clsact" : "ingress", 0xffff0000, TC_H_INGRESS,
			      0, 0, NULL, 0, 0, n * 40);
			tc->in = true;
			tc->counted = rows[i].clsact;
			police(tc, rows[i].classifier, rows[i].actions, 6250000, n * 40);
			police(tc, rows[i].classifier, rows[i].actions, 6250000, n * 40);
		}
		b = moved(from, to);
		assert_bag(b, "",
			   "moved.tc.police_5.drops=40 tc.in.drops=40 tc.in.overlimits=160 "
			   "tc.in.kind='police' tc.in.rate_bps=50e6");
	}
}

TEST(what_comes_in_is_followed_to_an_ifb)
{
	const struct tc_mirred away = { .index = 3, .eaction = TCA_EGRESS_REDIR, .ifindex = IFB };
	const struct tc_mirred copied = { .index = 4, .eaction = TCA_EGRESS_MIRROR, .ifindex = 11 };
	const struct tc_gact gact = { .index = 1, .action = TC_ACT_SHOT };
	FREED_BY(free_memory) struct np_tc *tc = empty();

	filter(tc, "u32", TCA_U32_ACT, "mirred", TCA_MIRRED_PARMS, &away, sizeof(away), 0);
	assert_int_equal(tc->ifb, 0); /* that goes out */
	tc->in = true;
	filter(tc, "u32", TCA_U32_ACT, "gact", TCA_GACT_PARMS, &gact, sizeof(gact), 0);
	filter(tc, "u32", TCA_U32_ACT, "mirred", TCA_MIRRED_PARMS, &copied, sizeof(copied), 0);
	assert_int_equal(tc->ifb, 0);
	filter(tc, "u32", TCA_U32_ACT, "mirred", TCA_MIRRED_PARMS, &away, sizeof(away), 0);
	assert_int_equal(tc->ifb, IFB);
	assert_int_equal(tc->count, 3); /* the first and the last are the same action */
	assert_string_equal(tc->at[1].name, "gact_1");
}

/* A message that has nothing but a kind. */
static int
handle(struct np_tc *tc, unsigned short type, const char *kind, uint32_t handle, uint32_t parent,
       int device)
{
	struct message m;

	begin(&m, type, handle, parent)->tcm_ifindex = device;
	put_text(&m, TCA_KIND, kind);
	return np_tc_handle(tc, &m.head);
}

/* Other interfaces' are in a dump, too, and more of them than there is room. */
TEST(others_and_too_many_are_left_out)
{
	FREED_BY(free_memory) struct np_tc *tc = empty();

	assert_int_equal(handle(tc, RTM_NEWQDISC, "tbf", 0x10000, TC_H_ROOT, DEVICE + 1), 0);
	assert_int_equal(handle(tc, RTM_NEWLINK, "tbf", 0x10000, TC_H_ROOT, DEVICE), 0);
	for (uint32_t i = 0; i < NP_TC_ITEMS + 3; i++) {
		handle(tc, RTM_NEWQDISC, "pfifo", (i + 1) << 16, TC_H_ROOT, DEVICE);
	}
	assert_int_equal(tc->count, NP_TC_ITEMS);
	assert_int_equal(tc->left_out, 3);
}

/* The interface has a queue for each of many processors, and behind them in the list a policer. */
TEST(many_queues_leave_room_for_limits)
{
	FREED_BY(free_memory) struct np_tc *tc = empty(), *from = empty();
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_bag_item it;

	handle(tc, RTM_NEWQDISC, "mq", 0x10000, TC_H_ROOT, DEVICE);
	for (uint32_t i = 1; i <= 100; i++) {
		handle(tc, RTM_NEWQDISC, "fq_codel", 0, 0x10000 + i, DEVICE);
	}
	handle(tc, RTM_NEWQDISC, "ingress", 0xffff0000, TC_H_INGRESS, DEVICE);
	assert_int_equal(tc->count, NP_TC_ITEMS / 2 + 1);
	assert_string_equal(tc->at[tc->count - 1].kind, "ingress");
	np_tc_put(from, tc, b);
	assert_true(np_bag_find(b, "tc.in.drops", &it));
	assert_true(np_bag_find(b, "moved.tc", &it));
	assert_int_equal(it.kind, NP_BAG_UNREAD);
}

/* Cut anywhere, and with any byte wrong, it is read without harm (sanitizers would tell). */
TEST(damaged_messages_do_no_harm)
{
	const struct tc_police parms = { .index = 5, .rate.rate = 1000 };
	FREED_BY(free_memory) struct np_tc *tc = empty();
	struct rtattr *options, *all, *one;
	struct message m, damaged;

	begin(&m, RTM_NEWTFILTER, 1, 0xfffffff2);
	put_text(&m, TCA_KIND, "u32");
	options = put(&m, TCA_OPTIONS, NULL, 0);
	all = put(&m, TCA_U32_ACT, NULL, 0);
	one = put(&m, 1, NULL, 0);
	put_text(&m, TCA_ACT_KIND, "police");
	put(&m, TCA_ACT_OPTIONS, &parms, sizeof(parms));
	nest_end(&m, one);
	nest_end(&m, all);
	nest_end(&m, options);
	for (uint32_t len = NLMSG_LENGTH(0); len <= m.head.nlmsg_len; len++) {
		FREED_BY(free_memory) struct message *cut = malloc(len);

		assert_non_null(cut);
		memcpy(cut, &m, len);
		cut->head.nlmsg_len = len;
		np_tc_handle(tc, &cut->head);
	}
	for (uint32_t at = NLMSG_LENGTH(0); at < m.head.nlmsg_len; at++) {
		for (int bit = 0; bit < 8; bit++) {
			damaged = m;
			damaged.room[at] ^= (char)(1 << bit);
			np_tc_handle(tc, &damaged.head);
		}
	}
	assert_true(tc->count >= 1);
}

/* The padding that the last attribute does not have is more than what is left. */
TEST(nothing_is_read_behind_an_attribute_of_an_odd_length)
{
	struct {
		struct rtattr one;
		char byte[4];
		struct rtattr behind;
	} m = { .one = { .rta_len = RTA_LENGTH(1), .rta_type = 1 },
		.behind = { .rta_len = RTA_LENGTH(0), .rta_type = 2 } };
	const struct rtattr *at[3];

	np_rtnl_sort(&m, m.one.rta_len, at, 3);
	assert_ptr_equal(at[1], &m.one);
	assert_null(at[2]);
}

TEST_MAIN()
