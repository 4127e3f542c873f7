"""`python -m eloquio …` is `eloquio …`."""

from eloquio.cli import main

if __name__ == "__main__":
    main()
