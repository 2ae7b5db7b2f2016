import { setTimeout as pause } from "node:timers/promises";
import { SessionError, show } from "../session/errors.ts";
import type { ParkedRun, RunWebhook } from "./worker-options.ts";

const TRIES_MAX = 3;
const TIMEOUT_MS = 5000;
const PAUSE_MS = 500;

/**
 * Posts to a URL that a run has parked. Retries a few times and then reports the failure. Not awaited by the run.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid URL.
 */
export function postParked({ url, headers = {} }: RunWebhook, report: (error: unknown) => void) {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new SessionError("INVALID_OPTION", `The webhook ${show(url)} is not an http or https address.`);
  }
  return ({ sessionId, userId, runId, questions }: ParkedRun): void => {
    const asked = questions.map(({ question, callId, name }) => ({ question, callId, name }));
    const body = JSON.stringify({ type: "parked", sessionId, runId, userId, questions: asked });
    void post(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body }).catch(report);
  };
}

async function post(url: string, init: RequestInit): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      const response = await fetch(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS), redirect: "error" });
      await response.body?.cancel();
      if (response.ok) return;
      throw new Error(`The webhook answered ${response.status}.`);
    } catch (error) {
      if (tries === TRIES_MAX) throw error;
      await pause(PAUSE_MS * tries, undefined, { ref: false });
    }
  }
}
