"""What netns.py leaves out. The link is kept full, to a hundredth: that takes a machine with nothing else
to do. All tests at a time see the link go silent, and their sessions killed: cut.py and kills.py do
much of that in less time.
"""

import lib
import netns


def suite(report: lib.Report) -> None:
    netns.run_parts(report, netns.MORE)


if __name__ == "__main__":
    lib.main(suite)
