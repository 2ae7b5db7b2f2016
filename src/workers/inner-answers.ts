import { uuidv7 } from "../internal/uuid.ts";
import { publishJson, subscribeJson } from "./live-event.ts";
import type { Listening, RunBell } from "./run-bell.ts";

const TOPIC = "answers";
/** How long whoever has the run may take to say so. */
const REPLY_MS = 3000;

/** A person's word on what a run inside of a tool asks, which only the process knows that has it. */
export interface InnerAnswer {
  readonly sessionId: string;
  readonly question: string;
  readonly approve: boolean;
  readonly reason?: string | undefined;
}

/** Gives an answer to whoever has the run; its id, or null where nobody is asked that. */
export async function giveAnswer(bell: RunBell, answer: InnerAnswer): Promise<string | null> {
  const reply = `answered.${uuidv7()}`;
  let taken: (runId: string | null) => void = () => {};
  const given = new Promise<string | null>((resolve) => {
    taken = resolve;
  });
  const subscription = await subscribeJson<string | null>(bell, reply, taken);
  const timer = setTimeout(taken, REPLY_MS, null);
  publishJson(bell, TOPIC, { ...answer, reply });
  try {
    return await given;
  } finally {
    clearTimeout(timer);
    await subscription.close();
  }
}

/** Takes answers for the sessions here; `take` gives the id of the run that asked, null for none, undefined for another's. */
export function takeAnswers(
  bell: RunBell,
  take: (answer: InnerAnswer) => Promise<string | null | undefined>,
): Promise<Listening> {
  return subscribeJson<InnerAnswer & { readonly reply: string }>(bell, TOPIC, ({ reply, ...answer }) => {
    void take(answer).then(
      (runId) => runId !== undefined && publishJson(bell, reply, runId),
      () => publishJson(bell, reply, null),
    );
  });
}
