#!/usr/bin/env python3
"""MPTCP on the distribution's kernel, which knows less of it than the newest ones: a part of tests/e2e/mptcp.py."""

# netvm: modules sch_tbf

import lib
import mptcp

lib.main(mptcp.brief)
