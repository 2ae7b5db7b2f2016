import type { Message } from "skein";

/** The length of each message of the benchmark. */
export const MESSAGE_CHARACTERS = 500;

const WORDS = (
  "session entry append branch merge leaf context token model answer question file line read write store order path " +
  "summary turn label fork checkpoint version user tool result lease watch search index commit record history"
).split(" ");
const POOL = 512;
const texts = Array.from({ length: POOL }, (_, index) => textOf(index));

/** The message at a position of the session: user and assistant alternate, and all texts have 500 characters. */
export function messageOf(index: number): Message {
  return { role: index % 2 === 0 ? "user" : "assistant", content: messageText(index) };
}

/** The 500 characters of the message at a position of the session. */
export function messageText(index: number): string {
  return texts[index % POOL] as string;
}

function textOf(seed: number): string {
  let state = seed + 1;
  let text = "";
  while (text.length < MESSAGE_CHARACTERS) {
    // A linear congruential generator: every run measures the same bytes.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += `${WORDS[state % WORDS.length]} `;
  }
  return `${text.slice(0, MESSAGE_CHARACTERS - 1)}.`;
}
