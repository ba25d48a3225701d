"""What an agent writes, as the page shows it, whoever told the agent to write it."""

import re

import pytest
from playwright.async_api import Locator, Page, expect

from segue import AGENT, open_store
from segue.core.messages import Text
from segue.core.windows import HOSTS
from tests.browser.seen import box, said, say
from tests.served import Served

pytestmark = pytest.mark.asyncio(loop_scope="session")
DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
MARKDOWN = f"""# Tea
**bold** *soft* ~~gone~~ `x < 1` [here](https://example.org/a) [no](javascript:alert(1))
<img src=x onerror=alert(1)> https://example.org/b.

### Steps

- [x] boil
- [ ] pour

3. three
   - and a half

   later
4. four

| leaf | minutes |
| :-- | --: |
| green \\| white | **2** |
| black |

* * *

1. one

![a cow](https://example.org/cow.png) ![a dot]({DOT})

Costs $5 or $10, in $HOME/$(id) and $HOME/$USER; $a_1*b_2*c$ and \\(x_i\\).

$$
\\sum_{{i}} *x*_i
$$

$\\frac$ is none.

```python
if a:
    return "**b**"
```"""
MATHS = ["$a_1*b_2*c$", "\\(x_i\\)", "$$\n\\sum_{i} *x*_i\n$$"]
HOSTILE = [
    "<script>alert(1)</script>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<svg/onload=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt&colon;alert(1))",
    "[a](  java\nscript:alert(1))",
    "[a](<javascript:alert(1)>)",
    "[a](data:text/html,<script>alert(1)</script>)",
    "[a](data:image/png;base64,AAAA)",
    "[a](vbscript:alert(1))",
    "[a](//evil.invalid/a)",
    "[a](/signin?code=a)",
    "[a]: javascript:alert(1)\n\n[a] and ![a]",
    "<javascript:alert(1)> <data:text/html,a>",
    "![a](https://evil.invalid/pixel.png)",
    '![a](https://evil.invalid/pixel.png "onload=alert(1)")',
    "![a](data:image/svg+xml;base64,PHN2Zy8+)",
    '[a](https://example.org/"onmouseover="alert(1))',
    "[![a](https://evil.invalid/pixel.png)](https://evil.invalid)",
    '```"><script>alert(1)</script>\na\n```',
    "```html\n<img src=x onerror=alert(1)>\n```",
    "```__proto__\na\n```",
    "```constructor\na\n```",
    '| a |\n| :-:" onload="alert(1) |\n| b |',
    "$\\href{javascript:alert(1)}{a}$ \\(<img src=x onerror=alert(1)>\\)",
    "$\\includegraphics{https://evil.invalid/pixel.png}$ $\\href{/signin?code=a}{b}$ $\\url{/signin?code=a}$",
    "$$\n</math><script>alert(1)</script>\n$$",
    "$a\\kern{-99em}b$ $\\hspace{-99em}c$ $\\rule{99em}{99em}$ $\\mathrlap{d\\hspace{99em}e}$",
]
FREEZING = [
    "`" * 50_000,
    "".join("a" + "`" * n for n in range(300)),
    "[" * 50_000,
    "![" * 10_000,
    "[a](" * 10_000,
    "*a " * 10_000 + "b*" * 10_000,
    "> " * 20_000,
    "- " * 20_000,
    "<" * 50_000,
    "$a" * 20_000,
    "\\(" * 20_000,
    "$" + "{" * 5_000 + "}" * 5_000 + "$",
    "$\\def\\a{\\a\\a}\\a$ $\\rule{9999em}{9999em}\\kern{-9999em}x$",
    "$$\na\n" * 5_000,
    "|a" * 5_000 + "\n" + "|-" * 5_000 + "\n" + "|\n" * 5_000,
    "`" * 1_000_000,
]
UNSAFE = """
() => {
  const leaves = (element) => {
    const said = element.closest(".said");
    const [own, bubble] = [element, said].map((one) => one.getBoundingClientRect());
    return getComputedStyle(said).overflow !== "clip" && (own.left < bubble.left || own.right > bubble.right);
  };
  const unsafe = ({ name, value }) => /^on/i.test(name)
    || (name === "src" && !/^data:image\\/(png|jpeg|gif|webp);/.test(value))
    || (/href$/.test(name) && !/^(https?|mailto):/.test(value));
  return [...document.querySelectorAll(".talk *")].flatMap((element) => [
    ...(/^(script|iframe|object|embed|form|link|meta|style|base)$/i.test(element.tagName) ? [element.outerHTML] : []),
    ...(element.closest("math") && leaves(element) ? [`outside: ${element.outerHTML}`] : []),
    ...[...element.attributes].filter(unsafe).map(({ name, value }) => `${name}=${value}`),
  ]);
}
"""


async def shown(page: Page, gateway: Served, *texts: str) -> Locator:
    """What the page makes of these, said by the agent."""
    await say(page, "say so")
    await expect(said(page, "agent")).to_have_count(1)
    async with await open_store(gateway.home / "segue.db") as store:
        [session] = await store.sessions(await store.person(HOSTS[0]))
        for text in texts:
            await store.say(session.id, AGENT, (Text(text),))
    await page.reload()
    await expect(said(page, "agent")).to_have_count(len(texts) + 1)
    return said(page, "agent")


async def test_markdown_is_shown_and_html_is_not(page: Page) -> None:
    await say(page, f"say {MARKDOWN}")
    answer = said(page, "agent")
    await expect(answer.locator("h2")).to_have_text("Tea")
    await expect(answer.locator("h4")).to_have_text("Steps")
    await expect(answer.locator("strong")).to_have_text(["bold", "2"])
    await expect(answer.locator("em")).to_have_text(["soft"])
    await expect(answer.locator("s")).to_have_text(["gone"])
    await expect(answer.locator("p code")).to_have_text(["x < 1"])
    links = answer.locator("a")
    await expect(links).to_have_text(["here", "https://example.org/b", "a cow (example.org)"])
    await expect(links.first).to_have_attribute("href", "https://example.org/a")
    await expect(links.first).to_have_attribute("rel", "noopener noreferrer")
    await expect(answer.locator("img")).to_have_attribute("src", DOT)
    await expect(answer).to_contain_text("[no](javascript:alert(1))\n<img src=x onerror=alert(1)>")
    tasks = answer.locator("ul").first.get_by_role("checkbox")
    await expect(tasks).to_have_count(2)
    await expect(tasks.first).to_be_checked()
    await expect(tasks.last).not_to_be_checked()
    await expect(answer.locator("ol").first).to_have_attribute("start", "3")
    await expect(answer.locator("ol").last).to_have_js_property("start", 1)
    await expect(answer.locator("ol > li")).to_have_text(
        [re.compile("^three.*and a half.*later$", re.DOTALL), "four", "one"]
    )
    await expect(answer.locator("ol ul li")).to_have_text(["and a half"])
    await expect(answer.locator("th")).to_have_text(["leaf", "minutes"])
    await expect(answer.locator("td")).to_have_text(["green | white", "2", "black", ""])
    await expect(answer.locator("td").nth(1)).to_have_css("text-align", "right")
    await expect(answer.locator("hr")).to_have_count(1)
    maths = answer.locator(".maths")
    await expect(maths.locator("math")).to_have_count(len(MATHS))
    assert [await one.get_attribute("title") for one in await maths.all()] == [*MATHS, "$\\frac$"]
    await expect(maths.first.locator("msub").first.locator("mi")).to_have_text("a")
    await expect(maths.nth(2).locator("munder, msub").first).to_contain_text("∑")
    await expect(maths.nth(2).locator("math")).to_have_attribute("display", "block")
    await expect(answer).to_contain_text("Costs $5 or $10, in $HOME/$(id) and $HOME/$USER;")
    await expect(answer).to_contain_text("$\\frac$ is none.")
    await expect(answer.locator("pre code")).to_have_text('if a:\n    return "**b**"')


async def test_code_has_colours_and_can_be_copied(page: Page) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await say(page, 'say ```python\nif a:\n    return "b"\n```\n\n```nonsense\nif\n```')
    code = said(page, "agent").locator(".code")
    await expect(code.first.locator("span")).to_have_text(["if", "return", '"b"'])
    await expect(code.last.locator("span")).to_have_count(0)
    await code.first.get_by_role("button", name="Copy").click()
    await expect(code.first.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == 'if a:\n    return "b"'


async def test_hostile_markdown_runs_nothing_and_calls_nobody(page: Page, gateway: Served) -> None:
    called: list[str] = []
    page.on("request", lambda request: called.append(request.url))
    page.on("dialog", lambda dialog: called.append(dialog.message))
    answers = await shown(page, gateway, *HOSTILE)
    await expect(answers.locator("math")).not_to_have_count(0)
    await expect(answers.nth(1)).to_contain_text("<script>alert(1)</script>")
    assert await page.evaluate(UNSAFE) == []
    for clickable in await answers.get_by_role("link").all():
        assert re.match(r"https?://(evil\.invalid|example\.org)", await clickable.get_attribute("href") or "")
    assert [url for url in called if not url.startswith((gateway.url, "data:"))] == []


async def test_no_text_freezes_the_page(page: Page, gateway: Served) -> None:
    await shown(page, gateway, *FREEZING)
    await say(page, "say alive")
    await expect(said(page, "agent").last).to_have_text("Agentalive")


async def test_code_that_takes_too_long_stays_plain_and_the_next_has_colours(page: Page, gateway: Served) -> None:
    await shown(page, gateway, f"```markdown\n{'[a](' * 20_000}\n```\n\n```python\nif a: pass\n```")
    await expect(said(page, "agent").last.locator(".code span")).to_have_text(["if", "pass"])
    await box(page).fill("still here")
