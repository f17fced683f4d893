"""The loop: a prompt goes to the model, its calls are run under the session's protection, until it calls nothing more.

It yields what happens and prints nothing. Each of the 23 moments of ``HookType`` has its place here or in what is called from here:
the session triggers SESSION_START and _END, TURN_PRE and _POST, TOOL_EXECUTE_PRE and _POST, TOOL_CONFIRM, CWD_CHANGED; the tools the
four of a file and ELICIT. Whatever follows from something is done after that something lies in the journal, so a killed loop goes on
where it was.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from safety.adapters.prompts import carry_out
from safety.agent import bundles as samples
from safety.agent import messages as m
from safety.agent import tools
from safety.agent.journal import BROKEN_OFF, UNKNOWN, UNTOUCHED, Journal, Result
from safety.agent.moments import trigger
from safety.agent.scripted import Scripted
from safety.hooks.caller import Outcome, attempt, propagates
from safety.hooks.events import HookType
from safety.hooks.message import Message, Role
from safety.session import Call, Denied, Session

SYSTEM = "You work in a folder on the user's machine, by your tools. Be brief."


class Loop:
    """One conversation in one session; the journal says how far it came. ``bundles`` are samples to switch on, by name."""

    def __init__(
        self,
        session: Session,
        journal: Journal,
        model: m.Model | None = None,
        *,
        bundles: tuple[str, ...] = (),
        limits: m.Limits = m.LIMITS,
        prices: m.Prices | None = None,
        system: str = SYSTEM,
        part_of: str = "",  # the id of the call that this loop is, for a sub-agent
    ) -> None:
        samples.switch_on(session, bundles)
        self.session, self.journal, self.model = session, journal, model or Scripted()
        self.limits, self.prices, self.system, self.part_of = limits, prices, system, part_of
        self.desk = tools.Desk(session, journal.cwd or os.fsdecode(session.cwd or session.root))
        self.tools: dict[str, tools.Tool] = {**tools.TOOLS, **({} if part_of else {"subagent": self.subagent})}
        self._inner: list[m.Event] = []
        self._running = ""

    def run(self, prompts: Iterable[str] = ()) -> Iterator[m.Event]:
        """A conversation from its start to its end, first the turn that was cut off, if any. Raises ModelFailed and JournalFailed."""
        with self.journal.alone():
            self.session.started(os.fsencode(self.desk.cwd))
            try:
                yield from self._turns(prompts)
            finally:
                self.session.end(logdir=self.journal.path.parent, manager=self)
            yield from self._told()

    def _turns(self, prompts: Iterable[str]) -> Iterator[m.Event]:
        if self.journal.prompt is not None:
            yield from self._turn(self.journal.prompt)
        for prompt in prompts:
            queue = [prompt]
            for _ in range(1 + self.limits.continues):
                if not queue:
                    break
                yield from self._turn(queue.pop(0))
                more = self._trigger(HookType.LOOP_CONTINUE, interactive=False, prompt_queue=tuple(queue), no_confirm=False)
                queue += [each.content for each in more if each.role == "user"]

    def _turn(self, prompt: str) -> Iterator[m.Event]:
        """One exchange. It ends when the model is done and nobody sends it back; Ctrl-C ends it with nobody asked."""
        if prompt.startswith("/") and (done := carry_out(self.session, prompt)) is not None:
            for text in done.messages:
                self._add("system", text)
            yield from map(m.Told, done.notices)
            return
        try:
            if self.journal.prompt is None:
                self.journal.open_turn(prompt)
            if self.journal.is_fresh:
                self.session.messages.extend(self.session.turn_start(prompt).messages)
                yield m.Prompted(self._add("user", prompt))
            while True:
                yield from self._work()
                feedback = self.session.turn_end()
                yield from self._told()
                if feedback is None:
                    break
                yield m.SentBack(feedback.reason)
                self._add("user", feedback.reason)
            self.journal.close_turn()
        except m.STOPS as stop:
            for call_id, wanted in self.journal.waiting:  # each call has an answer, or no endpoint takes the conversation
                result = self.journal.results.get(call_id, BROKEN_OFF if call_id in self.journal.started else UNTOUCHED)
                self.journal.answer(wanted, result.text)
            self.journal.close_turn()
            yield m.Interrupted(str(stop))
        finally:
            self.session.close_turn()  # nothing, where it has ended

    def _work(self) -> Iterator[m.Event]:
        """Steps until the model has answered and calls nothing."""
        for _ in range(self.limits.steps):
            if self.journal.is_answered:
                return
            self._heard(HookType.STEP_PRE)
            if not any(self.journal.waiting):
                yield from self._generate()
            for call_id, wanted in self.journal.waiting:
                yield from self._call(f"{self.part_of}{call_id}", wanted)
            self._heard(HookType.STEP_POST)
            yield from self._told()
        if not self.journal.is_answered:
            yield m.Told(f"git-safety: stopped after {self.limits.steps} steps")

    # -- the model -------------------------------------------------------------------------------------------------------------

    def _generate(self) -> Iterator[m.Event]:
        """One reply, streamed. What handlers of GENERATION_PRE say goes along this once and is not kept."""
        for text in self.session.take_messages():
            self._add("system", text)
        before, after = self.journal.trim(self.limits.context_tokens)
        if after < before:  # the endpoint's cache of the context is worth nothing now
            self._heard(HookType.CACHE_INVALIDATED, reason="compact", tokens_before=before, tokens_after=after)
            yield m.Trimmed(before, after)
        request = [{"role": "system", "content": self.system}, *self.journal.messages]
        seen = [Message("system" if each["role"] == "tool" else each["role"], each["content"]) for each in request]
        extra = self._trigger(HookType.GENERATION_PRE, seen, model=self.model.name)
        request += [{"role": each.role, "content": each.content} for each in extra]
        schemas = [tools.schema(name, tool) for name, tool in self.tools.items()]
        text = ""
        reply = m.Reply("")
        try:
            for piece in self.model.reply(request, schemas):
                if isinstance(piece, m.Reply):
                    reply = piece
                    continue
                text += piece
                self._heard(HookType.GENERATION_CHUNK, chunk=piece)
                yield m.Chunk(piece)
        except m.STOPS:
            self._heard(HookType.GENERATION_INTERRUPT)
            if text:
                self.journal.add({"role": "assistant", "content": text})
            raise m.Stopped(text) from None
        total = self.journal.usage + reply.usage
        cost = total.cost(self.prices) if self.prices else None
        facts = {"model": self.model.name, "usage": reply.usage, "total": total, "cost": cost}
        said = self._transformed(HookType.MESSAGE_TRANSFORM, Message("assistant", reply.text, metadata=facts))
        self._heard(HookType.GENERATION_POST, message=said)
        self.journal.add({**reply.message(), "content": said.content}, reply.usage)
        yield m.Replied(said.content, reply.usage, total)

    # -- its calls -------------------------------------------------------------------------------------------------------------

    def _call(self, call_id: str, wanted: m.ToolCall) -> Iterator[m.Event]:
        """One call: run, or answered from the journal. A call that was started and never finished is not run again."""
        given, wrong = tools.understood(wanted, self.tools)
        call = self.desk.call(call_id, wanted.name, given)
        yield m.Started(call.id, call.tool, call.input)
        cwd, stop = self.desk.cwd, None
        if wrong:
            result = Result("error", wrong)
        elif kept := self.journal.results.get(call.id):
            result = kept
            self.session.post(call, *((kept.text,) if kept.status == "ok" else (None, kept.text)))  # it may not have been heard
        elif call.id in self.journal.started and call.tool != "subagent":  # that one goes on by its own journal
            result = UNKNOWN
        else:
            try:
                result = self._run(call)
            except m.STOPS as pressed:
                result, stop = self.journal.results.get(call.id, UNTOUCHED), pressed
        message = Message("system", result.text, call_id=wanted.id)
        text = self._transformed(HookType.TOOL_TRANSFORM, message, tool_use=call).content
        self.journal.answer(wanted, text)
        if self.desk.cwd != cwd:
            self.session.cwd_changed(os.fsencode(cwd), os.fsencode(self.desk.cwd))
        yield from (m.Inner(call.id, event) for event in self._inner)
        self._inner.clear()
        yield m.Ended(call.id, call.tool, result.status, text)
        yield from self._told()
        if stop:
            raise m.Stopped

    def _run(self, call: Call) -> Result:
        """Runs a tool between PRE and POST. That it starts, and what it came to, is written down before anything else happens."""

        def run(given: Mapping[str, Any]) -> str:
            self.journal.start(call.id)
            self._running = call.id
            try:
                text, fault = attempt(partial(self.tools[call.tool], self.desk, **given))
            except m.STOPS:
                self.journal.finish(call.id, BROKEN_OFF, self.desk.cwd)
                raise
            result = Result("ok", str(text)) if fault is None else Result("error", f"{type(fault).__name__}: {fault}")
            self.journal.finish(call.id, result, self.desk.cwd)
            if fault is not None:
                raise fault
            return result.text

        text, fault = attempt(self.session.around, call, run)
        if fault is not None and propagates(fault):
            raise fault
        if isinstance(fault, Denied):
            return Result("denied", f"Not allowed: {fault}")
        return Result("ok", text) if fault is None else self.journal.results.get(call.id, Result("error", str(fault)))

    def subagent(self, desk: tools.Desk, task: str) -> str:
        """Give a task to a second agent with a conversation of its own; its last words come back."""
        journal = self.journal.below(self._running)
        inner = Loop(self.session, journal, self.model, limits=self.limits, system=self.system, part_of=f"{self._running}/")
        if not journal.messages:
            journal.add({"role": "user", "content": task})
        for event in inner._work():
            self._inner.append(event)
        self.journal.spend(journal.usage)
        return str(journal.messages[-1]["content"])

    # -- messages and moments ----------------------------------------------------------------------------------------------------

    def _add(self, role: Role, text: str) -> str:
        """Adds a message as the handlers leave it; gives its text."""
        said = self._transformed(HookType.MESSAGE_TRANSFORM, Message(role, text)).content
        self.journal.add({"role": role, "content": said})
        return said

    def _transformed(self, moment: HookType, message: Message, **fields: Any) -> Message:
        """The message, or what the first handler that has an opinion puts in its place."""
        return next(iter(self._trigger(moment, message=message, **fields)), message)

    def _heard(self, moment: HookType, **fields: Any) -> None:
        """Triggers a moment; what is said there goes to the model with the next request."""
        self.session.messages.extend(each.content for each in self._trigger(moment, **fields))

    def _trigger(self, moment: HookType, *args: Any, **fields: Any) -> Outcome:
        return trigger(self.session, moment, *args, manager=self, workspace=self.desk.workspace, **fields)

    def _told(self) -> Iterator[m.Told]:
        yield from map(m.Told, self.session.take_notices())
