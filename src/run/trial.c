#include "run/trial.h"

#include <string.h>

#include "run/report.h"

int
np_trial_connect(const struct np_trial *t, struct np_err *err)
{
	int rc = np_client_connect(t->client, t->target, err);

	t->plan->sequence = rc == NP_OK && (t->client->granted.caps & NP_CAP_SEQUENCE) != 0;
	return rc;
}

int
np_trial(const struct np_trial *t, struct np_trial_result *r, struct np_err *err)
{
	const struct np_plan *p = t->plan;
	int rc;

	memset(r, 0, sizeof(*r));
	if (!p->no_control && t->client->chan.fd < 0 && np_trial_connect(t, err) != NP_OK) {
		return err->code;
	}
	rc = np_client_run(t->client, p, t->terms, t->peer, &r->out, err);
	if (rc == NP_OK || r->out.measured) {
		np_report(&r->out, t->unit, &r->record);
	}
	if (p->pattern->connection_test && !p->no_control) {
		/* The end of this one's sending half was the end of the test. */
		np_client_close(t->client);
	}
	return rc;
}

void
np_trial_result_free(struct np_trial_result *r)
{
	np_outcome_free(&r->out);
}
