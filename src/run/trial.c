#include "run/trial.h"

#include <string.h>

int
np_trial_connect(const struct np_trial *t, struct np_err *err)
{
	int rc = np_client_connect(t->client, t->target, err);

	if (rc == NP_OK && np_plan_far_needs_fraction(t->plan) &&
	    (t->client->granted.caps & NP_CAP_PLAN) == 0) {
		struct np_plan *p = t->plan;
		char length[NP_LENGTH_TEXT];

		/* The far end ends the test, and knows only whole seconds. */
		np_client_tell(t->client,
			       "-l %s: the netserver at %s ends this test, and takes whole seconds "
			       "only (it is netperf's): the test lasts %lld s",
			       np_plan_length_text(p, length), t->client->peer,
			       (long long)p->length);
		p->length_less_ms = 0;
	}
	/* Evidence by numbers in datagrams needs both ends. */
	t->plan->sequence = rc == NP_OK && (t->client->granted.caps & NP_CAP_SEQUENCE) != 0;
	return rc;
}

int
np_trial(const struct np_trial *t, struct np_trial_result *r, struct np_err *err)
{
	const struct np_plan *p = t->plan;
	uint32_t sessions;
	int rc;

	memset(r, 0, sizeof(*r));
	if (!p->no_control && t->client->chan.fd < 0 && np_trial_connect(t, err) != NP_OK) {
		return err->code;
	}
	rc = np_trial_sessions(t, &sessions, err);
	if (rc == NP_OK) {
		rc = sessions > 1 ? np_group_run(t, &r->out, err)
				  : np_client_run(t->client, p, t->terms, t->peer, &r->out, err);
	}
	if (rc == NP_OK || r->out.measured) {
		/* Of a stream from this end, what arrived is the result. */
		bool far_counts = !p->pattern->transactions && !p->both && p->role == NP_LEAD;

		r->out.clean = np_clean_judge(r->out.near_bag, r->out.far_bag, far_counts);
		if (r->out.clean != NULL) {
			np_clean_reasons(r->out.clean->reason_s, r->out.reasons);
		}
		np_report(&r->out, t->unit, &r->record);
	}
	return rc;
}
