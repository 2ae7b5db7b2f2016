import type { OpenRun } from "../../../session/log/open-runs.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { type Command, textOption } from "../../command.ts";
import { AT_TERMINAL, openManager } from "../../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Stops a run. */
export const cancel: Command = {
  name: "cancel",
  summary: "Stop a run of a session, in whatever process it is; what was said stays.",
  arguments: [
    SESSION_ARGUMENT,
    {
      name: "run",
      what: "the run: its id, or a beginning of it; without it the one that has begun, else the first that waits",
      optional: true,
    },
  ],
  options: { reason: { value: "TEXT", what: "why, for whoever reads the log" } },
  examples: [{ line: 'skein cancel last --reason "asked the wrong thing"', what: "stop what the latest session does" }],
  json: { sessionId: "the session's id", runId: "the run that was told to stop" },
  store: "existing",
  async run(context) {
    const [session = "", reference] = context.positionals;
    const reason = textOption(context.values, "reason");
    await using store = await context.openStore();
    const { header, openRuns } = await findSession(store, session);
    const { id } = header;
    const { runId, state } = pickRun(openRuns, id, reference);
    await using manager = openManager(store);
    const told = await manager.cancel(id, { runId, ...(reason === undefined ? {} : { reason }) }, AT_TERMINAL);
    if (!told) throw new SessionError("RUN_ENDED", `Run ${runId} of session ${id} has ended meanwhile.`);
    if (context.json) context.printJson({ sessionId: id, runId });
    else context.print(`Run ${runId} of session ${id} is ${state === "started" ? "told to stop" : "cancelled"}.`);
    return 0;
  },
};

function pickRun(openRuns: readonly OpenRun[], sessionId: string, reference: string | undefined): OpenRun {
  if (reference === undefined) {
    const run = openRuns.find(({ state }) => state !== "requested") ?? openRuns[0];
    if (run !== undefined) return run;
    throw new SessionError("RUN_ENDED", `No run of session ${sessionId} is open.`);
  }
  const [run, ...others] = openRuns.filter(({ runId }) => runId.startsWith(reference));
  if (run === undefined) {
    throw new SessionError(
      "RUN_ENDED",
      `No run ${show(reference)} of session ${sessionId} is open; see skein runs ${sessionId}.`,
    );
  }
  if (others.length === 0) return run;
  const named = [run, ...others].map(({ runId }) => runId).join(", ");
  throw new SessionError("INVALID_OPTION", `${show(reference)} may be ${named}; write more of the id.`);
}
