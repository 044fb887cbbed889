#include "opt/option.h"

#include <ctype.h>
#include <getopt.h>
#include <string.h>

#include "base/secret.h"
#include "base/units.h"

enum { LONG_ONLY = 256, MAX_OPTIONS = 160 }; /* a long name's val: LONG_ONLY + index of its row */

/* Must an argument follow? With MAYBE it may, after "="; for NEXT and NUMBER see take_next(). */
static bool
takes_argument(const struct np_option *o)
{
	return o->kind >= NP_OPT_COUNT && o->kind <= NP_OPT_CUSTOM;
}

bool
np_option_in(const struct np_option *o, unsigned scope)
{
	return scope == 0 || o->scope == 0 || (o->scope & scope) != 0;
}

int
np_pair_split(const char *arg, struct np_pair *out, struct np_err *err)
{
	char *comma;

	memset(out, 0, sizeof(*out));
	if (np_text_copy(out->text, sizeof(out->text), arg) != 0) {
		return np_usage(err, "%.20s...: longer than %zu characters", arg,
				sizeof(out->text) - 1);
	}
	comma = strchr(out->text, ',');
	out->comma = comma != NULL;
	if (comma != NULL) {
		*comma = '\0';
		out->second = comma[1] != '\0' ? comma + 1 : NULL;
	}
	out->first = out->text[0] != '\0' ? out->text : NULL;
	return NP_OK;
}

/* Is v within the row's range? text: v as written, for the error. */
static int
check_range(const struct np_option *o, int64_t v, const char *text, struct np_err *err)
{
	bool any = o->min == 0 && o->max == 0;
	int64_t min = any ? INT32_MIN : o->min, max = any ? INT32_MAX : o->max;

	if (v < min || v > max) {
		return np_usage(err, "%s is out of range (%lld to %lld)", text, (long long)min,
				(long long)max);
	}
	return NP_OK;
}

/* Parse a count into the member at offset `to` of the context. */
static int
set_count(const struct np_option *o, const char *text, void *ctx, size_t to, struct np_err *err)
{
	int64_t v;
	int32_t v32;

	if (np_parse_count(text, &v) != 0) {
		return np_usage(err, "%s is not a number (try 64 or 64K)", text);
	}
	if (!(o->unset && v == -1) && check_range(o, v, text, err) != NP_OK) {
		return err->code;
	}
	if (o->wide) {
		memcpy((char *)ctx + to, &v, sizeof(v));
	} else {
		v32 = (int32_t)v;
		memcpy((char *)ctx + to, &v32, sizeof(v32));
	}
	return NP_OK;
}

/* Parse a length; only a row with a second member can have a fraction of a second. */
static int
set_length(const struct np_option *o, const char *text, void *ctx, struct np_err *err)
{
	uint32_t less_ms; /* v is rounded up by this */
	int64_t v;

	if (np_parse_length(text, &v, &less_ms) != 0) {
		return np_usage(err, "%s is not a length (try 10, 1m30s%s or -1000000)", text,
				o->to2 != 0 ? ", 500ms" : "");
	}
	if (less_ms != 0 && o->to2 == 0) {
		return np_usage(err, "%s is not a number of whole seconds", text);
	}
	if (check_range(o, v, text, err) != NP_OK) {
		return err->code;
	}
	memcpy((char *)ctx + o->to, &v, sizeof(v));
	if (o->to2 != 0) {
		memcpy((char *)ctx + o->to2, &less_ms, sizeof(less_ms));
	}
	return NP_OK;
}

/* Hand a word (NULL: no argument) to the row's read() or set(), for the member at offset `to`. */
static int
set_word(const struct np_option *o, const char *word, void *ctx, size_t to, struct np_err *err)
{
	const struct np_setting set = {
		.row = o, .arg = word, .ctx = ctx, .to = (char *)ctx + to, .err = err
	};

	if (o->read == NULL) {
		return o->set != NULL ? o->set(&set) : NP_OK;
	}
	return o->read(word, set.to) ? NP_OK : np_usage(err, "%.40s is not %s", word, o->what);
}

/* Set a pair by its kind. A missing value changes nothing; of two numbers one must be there. */
static int
set_pair(const struct np_option *o, const char *arg, void *ctx, struct np_err *err)
{
	bool words = o->kind == NP_OPT_BOTH_WORDS || o->kind == NP_OPT_EACH_WORD;
	bool both = o->kind == NP_OPT_BOTH || o->kind == NP_OPT_BOTH_WORDS;
	int (*set)(const struct np_option *, const char *, void *, size_t, struct np_err *) =
	    words ? set_word : set_count;
	struct np_pair pair;
	const char *second;

	/* It is never NULL here, but an analyzer can't know that. */
	arg = arg != NULL ? arg : "";
	if (np_pair_split(arg, &pair, err) != NP_OK) {
		return err->code;
	}
	second = both && !pair.comma ? pair.first : pair.second;
	if (!words && pair.first == NULL && second == NULL) {
		return np_usage(err, "'%s' holds no value", arg);
	}
	if (pair.first != NULL && set(o, pair.first, ctx, o->to, err) != NP_OK) {
		return err->code;
	}
	return second != NULL ? set(o, second, ctx, o->to2, err) : NP_OK;
}

bool
np_option_read_port(const char *word, void *to)
{
	int64_t n;

	/* AF_VSOCK has ports of 32 bits; the last one, UINT32_MAX, means any. */
	return word[0] != '\0' && (np_parse_int(word, &n) != 0 || (n >= 0 && n < UINT32_MAX)) &&
	       np_text_copy(to, NP_PORT_TEXT, word) == 0;
}

int
np_option_set_name(const struct np_setting *set)
{
	size_t most = (size_t)set->row->max;

	if (np_text_copy(set->to, most + 1, set->arg) != 0) {
		return np_usage(set->err, "a name of more than %zu characters", most);
	}
	return NP_OK;
}

int
np_option_set(const struct np_option *o, const char *arg, void *ctx, struct np_err *err)
{
	static const bool yes = true;
	const struct np_setting set = { .row = o, .arg = arg, .ctx = ctx, .err = err };
	int rc = NP_OK;

	switch (o->kind == NP_OPT_NUMBER && o->set == NULL ? NP_OPT_FLAG : o->kind) {
	case NP_OPT_FLAG:
		memcpy((char *)ctx + o->to, &yes, sizeof(yes));
		break;
	case NP_OPT_COUNT:
		rc = set_count(o, arg, ctx, o->to, err);
		break;
	case NP_OPT_LENGTH:
		rc = set_length(o, arg, ctx, err);
		break;
	case NP_OPT_TEXT:
		memcpy((char *)ctx + o->to, &arg, sizeof(arg));
		break;
	case NP_OPT_BOTH:
	case NP_OPT_EACH:
	case NP_OPT_BOTH_WORDS:
	case NP_OPT_EACH_WORD:
		rc = set_pair(o, arg, ctx, err);
		break;
	default:
		rc = set_word(o, arg, ctx, o->to, err);
		break;
	}
	return rc == NP_OK && o->then != NULL ? o->then(&set) : rc;
}

/* The arguments of getopt_long(), made from the table. */
struct grammar {
	char letters[2 * MAX_OPTIONS + 2];
	struct option names[MAX_OPTIONS + 1];
};

static void
make_grammar(const struct np_option_table *t, unsigned scope, struct grammar *g)
{
	size_t n = 0, names = 0;

	memset(g, 0, sizeof(*g));
	g->letters[n++] = ':'; /* return ':' for a missing argument, '?' for an unknown option */
	for (size_t i = 0; i < t->count && i < MAX_OPTIONS; i++) {
		const struct np_option *o = &t->rows[i];
		bool arg = takes_argument(o);

		if (!np_option_in(o, scope)) {
			continue;
		}
		if (o->letter != '\0') {
			g->letters[n++] = o->letter;
			if (arg) {
				g->letters[n++] = ':';
			}
		}
		if (o->name != NULL) {
			g->names[names].name = o->name;
			g->names[names].has_arg = arg                       ? required_argument
						  : o->kind == NP_OPT_MAYBE ? optional_argument
									    : no_argument;
			g->names[names++].val = LONG_ONLY + (int)i;
		}
	}
}

/* The row of what getopt_long(3) returned or put into optopt (0: an unknown name), or NULL. */
static const struct np_option *
row_of(const struct np_option_table *t, unsigned scope, int c)
{
	if (c >= LONG_ONLY) {
		return &t->rows[c - LONG_ONLY];
	}
	for (size_t i = 0; i < t->count; i++) {
		if (t->rows[i].letter == c && c != '\0' && np_option_in(&t->rows[i], scope)) {
			return &t->rows[i];
		}
	}
	return NULL;
}

/* The option as it was written, "-m" or "--rate". c: as row_of() takes it. Returns where. */
static const char *
spelled(const struct np_option *o, int c, char where[80])
{
	if (o->letter != '\0' && c < LONG_ONLY) {
		snprintf(where, 80, "-%c", o->letter);
	} else {
		snprintf(where, 80, "--%s", o->name);
	}
	return where;
}

/* Put "-m: " before the error, and after it a hint at look-alikes in arg (NULL: a secret). */
static int
name_option(const struct np_option *o, int c, const char *arg, struct np_err *err)
{
	struct np_lookalike l;
	char where[80];

	if (arg != NULL && np_text_lookalike(arg, &l) && err->code != NP_EPLAIN) {
		np_fail_hint(err, l.text);
	}
	np_fail_in(err, spelled(o, c, where));
	return err->code;
}

bool
np_option_is_number(const struct np_option *o)
{
	return o->numbers || o->kind == NP_OPT_COUNT || o->kind == NP_OPT_LENGTH ||
	       o->kind == NP_OPT_BOTH || o->kind == NP_OPT_EACH;
}

static size_t
count_digits(const char *at)
{
	return strspn(at, "0123456789");
}

/* Is the rest of the word an option without a blank before it (-l10-H)? Not in a list (1-x,y). */
static bool
runs_on(const char *at)
{
	return at[0] == '-' && isalpha((unsigned char)at[1]) && strchr(at, ',') == NULL;
}

/* Append the tidied number at the beginning of word, up to a comma, to the *len bytes in out. */
static enum np_tidy
tidy_one(const char *word, char *out, size_t size, size_t *len)
{
	const char *number = word + (*word == '-' || *word == '+');
	size_t whole = count_digits(number);
	const char *point = number + whole; /* if there is one */
	size_t fraction = *point == '.' ? count_digits(point + 1) : 0;
	const char *rest = *point == '.' ? point + 1 + fraction : point;
	const char *end = rest + strspn(rest, "0123456789abcdefghijklmnopqrstuvwxyz"
					      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
	size_t suffix = (size_t)(end - rest);
	bool fraction_is_0 = strspn(point + (rest != point), "0") >= fraction;
	bool below_one = strspn(number, "0") >= whole;
	/* With K or M, a cut would change more than a fraction. */
	bool is_plain_unit = suffix == 0 || (suffix == 1 && *rest == 's');
	bool ends = *end == ',' || *end == '\0' || runs_on(end);

	/* No number, or one for its parser to refuse. */
	if (whole == 0 || !ends || (!fraction_is_0 && (below_one || !is_plain_unit))) {
		*len = np_text_add(out, size, *len, "%.*s", (int)strcspn(word, ","), word);
		return NP_TIDY_AS_IS;
	}
	*len =
	    np_text_add(out, size, *len, "%.*s%.*s", (int)(point - word), word, (int)suffix, rest);
	if (runs_on(end)) {
		return NP_TIDY_RUN_ON;
	}
	return !fraction_is_0 ? NP_TIDY_CUT : rest != point ? NP_TIDY_SAME : NP_TIDY_AS_IS;
}

enum np_tidy
np_tidy_numbers(const char *word, char *out, size_t size)
{
	enum np_tidy most = NP_TIDY_AS_IS;
	size_t len = 0;

	if (strlen(word) >= size) {
		return NP_TIDY_AS_IS;
	}
	for (;;) {
		enum np_tidy what = tidy_one(word, out, size, &len);

		most = what > most ? what : most;
		word += strcspn(word, ",");
		if (*word == '\0') {
			return most;
		}
		len = np_text_add(out, size, len, ",");
		word++;
	}
}

/* Set the value; note what netperf would change or ignore, or that an earlier one is replaced. */
static int
set_tidily(const struct np_option *o, int c, const char *arg, void *ctx,
	   struct np_option_notes *notes, struct np_err *err)
{
	static const char *const why[] = {
		[NP_TIDY_CUT] = "whole numbers only",
		[NP_TIDY_RUN_ON] = "what follows without a blank has no effect, as in netperf",
	};
	char tidy[256], where[80];
	enum np_tidy what;
	uint32_t less_ms;
	bool is_length;
	int64_t v;

	if (notes == NULL || arg == NULL) { /* such changes are errors, or nothing can change */
		return np_option_set(o, arg, ctx, err);
	}
	if (o->astray != NULL && o->astray(arg)) {
		NP_NOTE(notes, "%s %.60s: ignored, as in netperf: %s\n", spelled(o, c, where), arg,
			o->instead);
		return NP_OK;
	}
	if (o->kind == NP_OPT_TEXT && o->letter == '\0') { /* netperf's own are replaced silently */
		const char *before;

		memcpy(&before, (char *)ctx + o->to, sizeof(before));
		if (before != NULL) {
			NP_NOTE(notes, "--%s %.200s: ignored: the one after it counts\n", o->name,
				before);
		}
	}
	/* A length with a fraction is valid as it is: do not cut it off. */
	is_length =
	    o->kind == NP_OPT_LENGTH && o->to2 != 0 && np_parse_length(arg, &v, &less_ms) == 0;
	what = np_option_is_number(o) && !is_length ? np_tidy_numbers(arg, tidy, sizeof(tidy))
						    : NP_TIDY_AS_IS;
	if (np_option_set(o, what == NP_TIDY_AS_IS ? arg : tidy, ctx, err) != NP_OK) {
		return err->code;
	}
	if (what == NP_TIDY_CUT || what == NP_TIDY_RUN_ON) {
		NP_NOTE(notes, "%s %.60s: read as %.60s: %s\n", spelled(o, c, where), arg, tidy,
			why[what]);
	}
	return NP_OK;
}

/* Refuse the words from..to - 1 if one begins with a character that only looks like a hyphen. */
static int
check_hyphens(char **argv, int from, int to, struct np_err *err)
{
	struct np_lookalike l;

	for (int i = from; i < to; i++) {
		if (np_text_lookalike(argv[i], &l) && l.hyphen && l.at == argv[i]) {
			bool more = /* than one letter: a long name */
			    isalpha((unsigned char)l.past[0]) && isalpha((unsigned char)l.past[1]);

			return np_usage(err, "%.60s: %s (type %s%.40s)", argv[i], l.text,
					more || *l.past == '\0' ? "--" : "-", l.past);
		}
	}
	return NP_OK;
}

/* Report the unknown option that getopt_long() just met, with the nearest name that there is. */
static int
refuse_unknown(const struct grammar *g, char **argv, struct np_err *err)
{
	const char *word = argv[optind - 1];
	struct np_nearest n = { .like = NULL };
	struct np_lookalike l;
	char name[64];

	if (optopt != 0 && optopt < LONG_ONLY) {
		/* -optopt: see np_options_parse(); not an errno, so verbatim */
		return np_fail_verbatim(err, NP_EUSAGE, -optopt,
					"-%c: no such option (-h lists them)", optopt);
	}
	if (optopt >= LONG_ONLY) {
		return np_usage(err, "%s: takes no argument", word);
	}
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	n.word = name;
	for (size_t i = 0; g->names[i].name != NULL; i++) {
		np_nearest_look(&n, g->names[i].name);
	}
	np_usage(err, "%s: no such option%s%s (-h lists them)", word,
		 n.like != NULL ? ", the nearest is --" : "", n.like != NULL ? n.like : "");
	if (np_text_lookalike(word, &l)) {
		np_fail_hint(err, l.text);
	}
	return err->code;
}

/* The argument of a NEXT or NUMBER option, if the next word is one; else NULL. */
static const char *
take_next(const struct np_option *o, int argc, char **argv)
{
	const char *word = optind < argc ? argv[optind] : "-"; /* "-" fits neither kind */
	bool fits = o->kind == NP_OPT_NEXT ? *word != '-' : *word >= '0' && *word <= '9';

	if ((o->kind != NP_OPT_NEXT && o->kind != NP_OPT_NUMBER) || !fits) {
		return NULL;
	}
	optind++;
	return word;
}

int
np_options_parse(const struct np_option_table *t, unsigned scope, int argc, char **argv, void *ctx,
		 struct np_option_notes *notes, struct np_err *err)
{
	struct grammar g;
	int c, rc;

	make_grammar(t, scope, &g);
	optind = 0; /* glibc and musl: start anew */
	opterr = 0;
	while ((c = getopt_long(argc, argv, g.letters, g.names, NULL)) != -1) {
		const struct np_option *o = row_of(t, scope, c == ':' ? optopt : c);
		const char *arg;

		if (o == NULL && notes != NULL && notes->skip_unknown && optopt > 0 &&
		    optopt < LONG_ONLY) {
			notes->skipped = (char)optopt;
			NP_NOTE(notes,
				"-%c: ignored, as in netperf: the test has no such option (%s)\n",
				optopt, /* netperf's older tests have no -k, -o and -O */
				strchr("kOo", optopt) != NULL ? "its figures are in --json"
							      : "-- -h lists them");
			continue;
		}
		if (notes != NULL && (o == NULL || c == ':')) {
			notes->wrong = o == NULL ? NP_OPT_UNKNOWN : NP_OPT_BARE;
			notes->letter = optopt > 0 && optopt < LONG_ONLY ? (char)optopt : '-';
		}
		if (o == NULL) { /* a false "--" earlier may be the cause, so check that first */
			return check_hyphens(argv, 1, argc, err) != NP_OK
				   ? (int)err->code
				   : refuse_unknown(&g, argv, err);
		}
		if (c == ':') {
			np_usage(err, "needs an argument (%s)", o->arg);
			return name_option(o, optopt, NULL, err);
		}
		arg = takes_argument(o) || o->kind == NP_OPT_MAYBE ? optarg
								   : take_next(o, argc, argv);
		rc = set_tidily(o, c, arg, ctx, notes, err);
		if (o->secret && arg == optarg) { /* from ps(1) */
			np_secret_hide(optarg);
		}
		if (rc != NP_OK) {
			return name_option(o, c, o->secret ? NULL : arg, err);
		}
		if (notes != NULL && notes->given_count < NP_OPT_GIVEN) {
			notes->given[notes->given_count++] = o;
		}
	}
	if (notes != NULL) {
		notes->words = optind;
	}
	return check_hyphens(argv, optind, argc, err);
}
