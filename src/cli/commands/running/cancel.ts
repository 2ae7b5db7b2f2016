import { hasBegun } from "../../../session/log/run-fold.ts";
import type { OpenRun } from "../../../session/log/open-runs.ts";
import { SessionError } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { type Command, textOption } from "../../command.ts";
import { AT_TERMINAL, openManager } from "../../open-manager.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Cancels a run. */
export const cancel: Command = {
  name: "cancel",
  summary: "Cancel a run of a session, in any process. Its messages so far are kept.",
  arguments: [
    SESSION_ARGUMENT,
    {
      name: "run",
      what: "the run: its id or a prefix of it (default: the run that has started, else the first that waits)",
      optional: true,
    },
  ],
  options: { reason: { value: "TEXT", what: "the reason, stored in the log" } },
  examples: [
    { line: 'skein cancel last --reason "asked the wrong thing"', what: "cancel the run of the latest session" },
  ],
  json: { sessionId: "the session's id", runId: "the id of the cancelled run" },
  store: "existing",
  async run(context) {
    const [session = "", reference] = context.positionals;
    const reason = textOption(context.values, "reason");
    await using store = await context.openStore();
    const { header, openRuns } = await findSession(store, session);
    const { id } = header;
    const { runId } = pickRun(openRuns, id, reference);
    await using manager = await openManager(store);
    const found = await manager.cancel(id, { runId, ...(reason === undefined ? {} : { reason }) }, AT_TERMINAL);
    if (!found) throw new SessionError("RUN_ENDED", `Run ${runId} of session ${id} has already ended.`);
    if (context.json) context.printJson({ sessionId: id, runId });
    else {
      const isOpen = (await store.head(id))?.openRuns.some((run) => run.runId === runId) === true;
      context.print(`Run ${runId} of session ${id} is ${isOpen ? "being cancelled" : "cancelled"}.`);
    }
    return 0;
  },
};

function pickRun(openRuns: readonly OpenRun[], sessionId: string, reference: string | undefined): OpenRun {
  if (reference === undefined) {
    const run = openRuns.find(hasBegun) ?? openRuns[0];
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
  throw new SessionError("INVALID_OPTION", `${show(reference)} matches ${named}; write more of the id.`);
}
