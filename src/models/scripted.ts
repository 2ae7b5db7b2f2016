import type { Model, ModelReply, ModelRequest } from "../agent/model.ts";

/** An answer of a script: a text, a whole reply, an error to fail with, or a function of the request. */
export type ScriptedReply =
  | string
  | ModelReply
  | Error
  | ((request: ModelRequest) => string | ModelReply | Promise<string | ModelReply>);

/** A model that gives the scripted replies in order and remembers what it was asked. */
export interface ScriptedModel extends Model {
  readonly requests: readonly ModelRequest[];
}

/** A model that replays replies, for tests and examples. Asked once more than it has replies, it fails. */
export function scripted(
  replies: readonly ScriptedReply[],
  options: { readonly contextWindow?: number } = {},
): ScriptedModel {
  const requests: ModelRequest[] = [];
  return {
    provider: "scripted",
    id: "scripted",
    ...options,
    requests,
    async complete(request, { signal } = {}) {
      signal?.throwIfAborted();
      const reply = replies[requests.length];
      requests.push(request);
      if (reply === undefined)
        throw new Error(`The scripted model has ${replies.length} replies and was asked ${requests.length} times.`);
      if (reply instanceof Error) throw reply;
      const given = typeof reply === "function" ? await unlessAborted(reply(request), signal) : reply;
      if (typeof given !== "string") return given;
      return { role: "assistant", content: given, provider: "scripted", model: "scripted", stopReason: "stop" };
    },
  };
}

/** What a reply comes to, or the reason of an abort that comes first. */
async function unlessAborted<T>(reply: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return reply;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
  });
  try {
    return await Promise.race([reply, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
