import { expect, test } from "vitest";
import { checkedMessage, isCheckedMessage } from "./checked-message.ts";
import { checkDrafts } from "./log/draft.ts";
import { ENTRY_BYTES_MAX } from "./limits.ts";

const given = { role: "assistant", content: "yes", toolCalls: [{ id: "c", name: "n", arguments: "{}" }] };

test("checking a message returns a frozen copy, and checking that copy returns the same object", () => {
  const message = checkedMessage(given);
  expect(message).toEqual(given);
  expect(message).not.toBe(given);
  expect(Object.isFrozen((message as typeof given).toolCalls[0])).toBe(true);
  expect(checkedMessage(message)).toBe(message);
});

test("a frozen message that was never checked is checked", () => {
  const like = Object.freeze({ ...checkedMessage(given) });
  expect(isCheckedMessage(like)).toBe(false);
  expect(() => checkedMessage({ role: "nobody", content: "" })).toThrow(/role/);
});

test("an entry of a checked message keeps the same object, and other messages are copied", () => {
  const message = checkedMessage(given);
  const bodyOf = (draft: object): unknown => checkDrafts([draft as never], { verbatim: false })[0]?.body;
  expect((bodyOf({ type: "message", message }) as { message: unknown }).message).toBe(message);
  const more = bodyOf({ type: "message", message, id: "e" }) as { message: unknown };
  expect(more.message).toEqual(message);
  expect(() => bodyOf({ type: "message", message: { ...message, role: "nobody" } })).toThrow(/role/);
});

test("an entry of a checked message that is too large is refused", () => {
  const message = checkedMessage({ role: "user", content: "x".repeat(ENTRY_BYTES_MAX + 1) });
  expect(() => checkDrafts([{ type: "message", message }], { verbatim: false })).toThrow(/takes \d+ bytes/);
});
