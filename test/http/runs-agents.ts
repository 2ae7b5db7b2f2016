import { type Agent, createAgent } from "../../src/agent/agent.ts";
import type { ModelDelta } from "../../src/agent/model/model.ts";
import type { Tool } from "../../src/agent/tools/tool.ts";
import { type ScriptedReply, scripted } from "../../src/models/index.ts";

/** An agent that gives these answers, one after the other. */
export function answering(replies: readonly ScriptedReply[], tools: readonly Tool[] = [], name?: string): Agent {
  const named = name === undefined ? {} : { name };
  return createAgent({ prompt: "Be brief.", model: scripted(replies), tools, builtInTools: false, ...named });
}

/** Something that a test waits for and lets happen. */
export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

export function gate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** An answer in pieces, the last of which comes once the gate is open. */
export function pausing(pieces: readonly string[], pause: Gate): ScriptedReply {
  return async function* stream(): AsyncGenerator<ModelDelta> {
    for (const text of pieces.slice(0, -1)) yield { type: "text-delta", text };
    await pause.opened;
    yield { type: "text-delta", text: pieces.at(-1) ?? "" };
    yield { type: "finish", stopReason: "stop" };
  };
}
