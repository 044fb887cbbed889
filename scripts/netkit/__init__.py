"""What netlab, netsweep and netreport share: results, ceilings, tables, plots."""

VERSION = "0.1.0"   # as in configure.ac
