"""Debian's headless Chromium, driven by its DevTools protocol over two pipes: no driver program, no dependency.

Pages are read and used as a person does: by the words on them, with a mouse and a keyboard.
"""

import asyncio
import base64
import contextlib
import fcntl
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, TALL = 1280, 900, 1500
SCALE = 0.72
"""Of pictures, which are kept in the repository."""
PATIENCE = 30.0
"""Seconds in which what is waited for must have come."""
CLICKABLE = "button, a, input, [role=menuitem], [role=option], [role=tab], [role=combobox]"
_POLL = 0.2
_LONGEST_MESSAGE = 64 * 1024 * 1024
_LOWEST_FD = 64
"""Of our ends in the child, before it moves them to 3 and 4, where Chromium expects them."""
_MOVE = "import os, sys; os.dup2({read}, 3); os.dup2({write}, 4); os.execvp(sys.argv[1], sys.argv[1:])"

_FIND = """
(words, selector) => {
  const seen = [...document.querySelectorAll(selector)].filter(each => {
    const box = each.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && !each.disabled && getComputedStyle(each).visibility !== 'hidden';
  });
  const text = each => (each.innerText || each.value || each.placeholder || each.ariaLabel || '').trim();
  const found = seen.filter(each => text(each) === words).pop()
    || seen.filter(each => text(each).split('\\n')[0].trim() === words).pop()
    || seen.filter(each => text(each).startsWith(words)).pop();
  if (!found) return null;
  found.scrollIntoView({block: 'center'});
  const box = found.getBoundingClientRect();
  const place = {x: box.x + box.width / 2, y: box.y + box.height / 2};
  return found.contains(document.elementFromPoint(place.x, place.y)) ? place : null;  // else something covers it
}
"""

_BOX = """
selector => {
  const found = [...document.querySelectorAll(selector)].find(each => each.getBoundingClientRect().height > 0);
  if (!found) return null;
  const box = found.getBoundingClientRect();
  const ends = [...found.querySelectorAll('*')].filter(each => !each.children.length)
    .map(each => each.getBoundingClientRect()).filter(each => each.width > 0).map(each => each.bottom + 24);
  const end = Math.min(box.bottom, innerHeight, Math.max(...ends));
  return {x: box.x, y: box.y, width: box.width, height: end - box.y};
}
"""
_FILLED = """
selector => {
  const found = [...document.querySelectorAll(selector)].filter(each => each.getBoundingClientRect().height > 0).pop();
  return found ? (found.value || found.innerText).trim() : null;
}
"""
_TEXT = """
[document, ...[...document.querySelectorAll('iframe')].map(frame => frame.contentDocument)]
  .map(each => each && each.body ? each.body.innerText : '').join('\\n')
"""
"""Markdown stands in frames of their own."""


class NotSeen(Exception):
    """What was waited for did not come on the page."""


class Browser:
    """One page of one browser."""

    def __init__(self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, write: int) -> None:
        self._process = process
        self._reader = reader
        self._write = write
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._session: str | None = None
        self._reading = asyncio.create_task(self._read())

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator["Browser"]:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if program is None:
            raise NotSeen("There is no chromium here; install it (apt-get install chromium).")
        with tempfile.TemporaryDirectory(prefix="memory-browser-", ignore_cleanup_errors=True) as profile:
            browser = await cls._start(program, profile)
            try:
                await browser._attach()
                yield browser
            finally:
                await browser._stop()

    @classmethod
    async def _start(cls, program: str, profile: str) -> "Browser":
        to_read, write = os.pipe()
        read, to_write = os.pipe()
        theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD, _LOWEST_FD) for fd in (to_read, to_write)]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _MOVE.format(read=theirs[0], write=theirs[1]),
            program,
            "--headless=new",
            "--remote-debugging-pipe",
            "--no-sandbox",  # root, in a container, has no other way; it opens nothing but the UI on this machine
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-background-networking",
            "--force-color-profile=srgb",
            f"--window-size={WIDTH},{HEIGHT}",
            f"--user-data-dir={profile}",
            "about:blank",
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=theirs,
            start_new_session=True,
        )
        for fd in (*theirs, to_read, to_write):
            os.close(fd)
        reader = asyncio.StreamReader(limit=_LONGEST_MESSAGE)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", 0)
        )
        return cls(process, reader, write)

    # The page

    async def goto(self, url: str) -> None:
        await self._send("Page.navigate", url=url)

    async def text(self) -> str:
        """All that can be read on the page."""
        return str(await self.evaluate(_TEXT))

    async def reads(self, *words: str, seconds: float = PATIENCE) -> str:
        """Wait until all of these words stand on the page; its text. Raises NotSeen."""
        deadline = time.monotonic() + seconds
        while True:
            text = await self.text()
            missing = [each for each in words if each not in text]
            if not missing:
                return text
            if time.monotonic() > deadline:
                raise NotSeen(f"The page does not say {missing}. It says:\n{text[:3000]}")
            await asyncio.sleep(_POLL)

    async def click(self, words: str, selector: str = CLICKABLE) -> None:
        """Click on what says this, or on all that the selector finds where it is empty: on the last of them that can be
        seen. Raises NotSeen."""
        deadline = time.monotonic() + PATIENCE
        place, before = None, None
        while place is None or place != before:  # what still moves would be missed
            before, place = place, await self._call(_FIND, words, selector)
            if time.monotonic() > deadline:
                raise NotSeen(f"There is no {words!r} to click on. The page says:\n{(await self.text())[:3000]}")
            await asyncio.sleep(_POLL)
        at = {"x": place["x"], "y": place["y"], "button": "left", "clickCount": 1}
        await self._send("Input.dispatchMouseEvent", type="mouseMoved", x=place["x"], y=place["y"])
        await self._send("Input.dispatchMouseEvent", type="mousePressed", **at)
        await self._send("Input.dispatchMouseEvent", type="mouseReleased", **at)

    async def fill(self, field: str, text: str) -> None:
        """Type this into a field. Raises NotSeen where it does not come to stand there."""
        await self.click("", field)
        at = {"key": "a", "code": "KeyA", "modifiers": 2}  # Ctrl
        await self._send("Input.dispatchKeyEvent", type="keyDown", commands=["selectAll"], **at)
        await self._send("Input.dispatchKeyEvent", type="keyUp", **at)
        await self._send("Input.insertText", text=text)
        deadline = time.monotonic() + PATIENCE
        while await self._call(_FILLED, field) != text:
            if time.monotonic() > deadline:
                raise NotSeen(f"The field {field!r} does not hold {text!r}.")
            await asyncio.sleep(_POLL)

    async def evaluate(self, expression: str) -> Any:
        answer = await self._send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise NotSeen(f"The page could not be asked: {answer['exceptionDetails'].get('text')}")
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """One letter, as a shortcut of the page."""
        at = {"key": key, "code": f"Key{key.upper()}", "windowsVirtualKeyCode": ord(key.upper())}
        await self._send("Input.dispatchKeyEvent", type="keyDown", text=key, **at)
        await self._send("Input.dispatchKeyEvent", type="keyUp", **at)

    async def picture(self, path: Path, of: str) -> None:
        """A PNG of the first thing on the page that this selector finds, the whole of it."""
        await self._screen(TALL)
        await asyncio.sleep(1)  # what fades in has come to rest
        box = await self._call(_BOX, of)
        if box is None:
            raise NotSeen(f"There is no {of!r} to take a picture of.")
        shot = await self._send("Page.captureScreenshot", format="png", clip={**box, "scale": SCALE})
        await asyncio.to_thread(path.write_bytes, base64.b64decode(shot["data"]))
        await self._screen(HEIGHT)

    async def _screen(self, height: int) -> None:
        await self._send(
            "Emulation.setDeviceMetricsOverride", width=WIDTH, height=height, deviceScaleFactor=1, mobile=False
        )

    # The protocol

    async def _call(self, function: str, *arguments: str) -> Any:
        given = ", ".join(json.dumps(argument) for argument in arguments)
        return await self.evaluate(f"({function})({given})")

    async def _attach(self) -> None:
        targets = (await self._send("Target.getTargets"))["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = await self._send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        await self._send("Page.enable")
        await self._screen(HEIGHT)

    async def _send(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._ids)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        os.write(self._write, json.dumps(message).encode() + b"\0")
        try:
            answer = await asyncio.wait_for(waiting, PATIENCE)
        except TimeoutError:
            raise NotSeen(f"The browser did not answer {method} within {PATIENCE:.0f} s.") from None
        finally:
            self._waiting.pop(number, None)
        if "error" in answer:
            raise NotSeen(f"The browser refused {method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                message = json.loads((await self._reader.readuntil(b"\0"))[:-1])
                waiting = self._waiting.get(message.get("id", 0))
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)

    async def _stop(self) -> None:
        with contextlib.suppress(NotSeen, OSError):
            self._session = None
            await self._send("Browser.close")
        try:
            await asyncio.wait_for(self._process.wait(), 10)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reading.cancel()
        os.close(self._write)
