"""The page that asks a browser for the key: a plain form, no script."""

import html

from eloquio.errors import EloquioError, KeyRequired

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>Sign in · Eloquio</title>
<style>
:root {{ color-scheme: light dark; }}
* {{ box-sizing: border-box; }}
body {{
  margin: 0; min-height: 100dvh; display: grid; place-items: center; padding: 1.5rem;
  font: 1rem/1.5 system-ui, sans-serif; background: light-dark(#f6f6f7, #131316);
  color: light-dark(#1a1a1e, #ededf0);
}}
main {{
  width: min(100%, 24rem); padding: 2rem; border-radius: 1rem;
  background: light-dark(#fff, #1c1c21); border: 1px solid light-dark(#dddde2, #34343c);
}}
h1 {{ margin: 0 0 .25rem; font-size: 1.25rem; }}
p {{ margin: 0 0 1.25rem; color: light-dark(#55555f, #a9a9b4); }}
code {{ font-size: .9em; }}
[role=alert] {{ color: light-dark(#a4161a, #ff9d9d); }}
label {{ display: block; margin-bottom: .375rem; font-weight: 600; }}
input, button {{ width: 100%; min-height: 2.75rem; border-radius: .5rem; font: inherit; }}
input {{
  padding: 0 .75rem; border: 1px solid light-dark(#85858f, #7b7b86); background: transparent;
  color: inherit;
}}
button {{
  margin-top: 1rem; border: 0; font-weight: 600; cursor: pointer;
  background: light-dark(#1a1a1e, #ededf0); color: light-dark(#fff, #131316);
}}
:focus-visible {{ outline: 3px solid light-dark(#3b6fe0, #8db0ff); outline-offset: 2px; }}
</style>
</head>
<body>
<main>
<h1>Eloquio</h1>
<p>This Eloquio asks for its key. On the machine where it runs, <code>eloquio key</code> prints it.
</p>
{notice}<form method="post" action="/auth/session">
<input name="username" value="eloquio" autocomplete="username" hidden>
<label for="key">Key</label>
<input id="key" name="key" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Sign in</button>
</form>
</main>
</body>
</html>
"""


def sign_in_page(error: EloquioError) -> bytes:
    """The page, with the error's words unless it only says that there was no key yet."""
    notice = "" if isinstance(error, KeyRequired) else f"{error.message} {error.next_step or ''}"
    paragraph = f'<p role="alert">{html.escape(notice.strip())}</p>\n' if notice else ""
    return _PAGE.format(notice=paragraph).encode()
