"""`python -m eloquio.setup start|check|test …`, which the programs in `scripts` call."""

import sys


def main() -> int:
    task, *arguments = sys.argv[1:]
    match task:
        case "start":
            from eloquio.setup.start import start

            return start(arguments)
        case "worker":
            from eloquio.setup.worker import make_beside_server

            return make_beside_server(arguments)
        case "check":
            from eloquio.setup.check import check

            return check(arguments)
        case "test":
            from eloquio.setup.test import test

            return test(arguments)
    sys.stderr.write(f"{task} is none of start, check, test\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
