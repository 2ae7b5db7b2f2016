import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ChatLines } from "../../src/cli/chat/chat-lines.ts";

interface Typist {
  readonly lines: ChatLines;
  type(keys: string): void;
  /** The output of the terminal so far. */
  shown(): string;
  busy: boolean;
  stops: number;
}

function typist(atTerminal = true): Typist {
  const input = new PassThrough();
  const output = new PassThrough();
  let text = "";
  output.on("data", (part: Buffer) => {
    text += part.toString();
  });
  const typing: Typist = {
    lines: new ChatLines({
      input,
      terminal: atTerminal ? output : null,
      interrupt: () => {
        typing.stops += 1;
        return typing.busy;
      },
    }),
    type: (keys) => void input.write(keys),
    shown: () => stripVTControlCharacters(text),
    busy: false,
    stops: 0,
  };
  onTestFinished(() => typing.lines.close());
  return typing;
}

const settle = () => new Promise((resolve) => setImmediate(resolve));
const prompt = () => "> ";

test("returns lines in order, including those typed ahead, and null at the end", async () => {
  const { lines, type, shown } = typist();
  const first = lines.next(prompt);
  type("one\ntwo\n");
  expect([await first, await lines.next(prompt)]).toEqual(["one", "two"]);
  expect(shown()).toContain("> ");
  const last = lines.next(prompt);
  type("\u0004");
  expect(await last).toBeNull();
  expect(await lines.next(prompt)).toBeNull();
});

test("prints how to leave at the first Ctrl-C, clears the line, and leaves at the second", async () => {
  const { lines, type, shown } = typist();
  const line = lines.next(prompt);
  type("half\u0003");
  await settle();
  expect(shown()).toContain("Press Ctrl-C again to leave");
  type("whole\n");
  expect(await line).toBe("whole");
  const next = lines.next(prompt);
  type("\u0003");
  await settle();
  expect(shown().split("Press Ctrl-C again to leave")).toHaveLength(3);
  type("\u0003");
  expect(await next).toBeNull();
});

test("aborts the current work at Ctrl-C, and keeps running", async () => {
  const typing = typist();
  typing.busy = true;
  typing.type("\u0003\u0003");
  await settle();
  typing.busy = false;
  const line = typing.lines.next(prompt);
  typing.type("still here\n");
  expect([await line, typing.stops]).toEqual(["still here", 2]);
  expect(typing.shown()).not.toContain("leaves");
});

test("repeats a question until the answer is yes or no, and ignores lines typed before it", async () => {
  const { lines, type, shown } = typist();
  type("yes\n");
  await settle();
  const answer = lines.confirm("Allow it?");
  type("maybe\n");
  await settle();
  type("N\n");
  expect(await answer).toBe("no");
  expect(shown().split("Allow it? [y/n]").length).toBeGreaterThanOrEqual(3);
  expect(await lines.next(prompt)).toBe("yes");
  const other = lines.confirm("And this?");
  type("y\n");
  expect(await other).toBe("yes");
});

test("treats Ctrl-C and Ctrl-D at a question as stopped", async () => {
  for (const key of ["\u0003", "\u0004"]) {
    const typing = typist();
    typing.busy = true;
    const answer = typing.lines.confirm("Allow it?");
    typing.type(key);
    expect([await answer, typing.stops]).toEqual(["stopped", 1]);
  }
});

test("completes the commands", async () => {
  const { lines, type } = typist();
  const line = lines.next(prompt);
  // A tab that arrives together with other keys counts as pasted text.
  for (const keys of ["/conte", "\t", "\n"]) {
    type(keys);
    await settle();
  }
  expect(await line).toBe("/context ");
});

test("asks and shows nothing through a pipe, and aborts nothing at the end of the input", async () => {
  const typing = typist(false);
  typing.busy = true;
  expect(await typing.lines.confirm("Allow it?")).toBe("nobody");
  typing.type("one\n");
  await settle();
  typing.lines.close();
  await settle();
  expect([await typing.lines.next(prompt), await typing.lines.next(prompt)]).toEqual(["one", null]);
  expect([typing.shown(), typing.stops]).toEqual(["", 0]);
});
