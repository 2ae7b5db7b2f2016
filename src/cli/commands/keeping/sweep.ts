import { counted } from "../../terminal.ts";
import { SessionError, SessionManager } from "../../../index.ts";
import { sessionConfigFromEnvironment } from "../../../lifecycle/config-from-environment.ts";
import type { Command } from "../../command.ts";
import { ageOption, countOption } from "../../options/option-values.ts";

/** Marks idle sessions as expired. */
export const sweep: Command = {
  name: "sweep",
  summary: "Expire sessions that were idle for too long: they accept no more turns.",
  arguments: [],
  options: {
    idle: { value: "AGE", what: "the idle time after which a session expires, as in 24h; required" },
    limit: { value: "N", default: "10000", what: "expire at most this many sessions" },
  },
  examples: [{ line: "skein sweep --idle 7d", what: "expire sessions that were idle for a week" }],
  json: {
    expired: "the number of sessions that expired",
    failures: "sessions that could not be expired: sessionId, message",
  },
  store: "existing",
  async run(context) {
    const { values } = context;
    const config = sessionConfigFromEnvironment();
    const sessionTtl = ageOption(values, "idle", 1);
    if (sessionTtl === undefined) {
      const message = "sweep needs --idle, as in --idle 24h: an expired session cannot be reactivated.";
      throw new SessionError("INVALID_OPTION", message);
    }
    const limit = countOption(values, "limit");
    const failures: { readonly sessionId: string | null; readonly message: string }[] = [];
    await using store = await context.openStore();
    await using manager = new SessionManager({
      store,
      config: { ...config, sessionTtl },
      onError: (error, { sessionId }) => {
        failures.push({ sessionId, message: error instanceof Error ? error.message : String(error) });
      },
    });
    const expired = await manager.sweep(limit === undefined ? {} : { limit });
    if (context.json) context.printJson({ expired, failures });
    else {
      for (const { sessionId, message } of failures) context.print(`not expired: ${sessionId ?? ""}: ${message}`);
      context.print(`${counted(expired, "session", "sessions")} expired.`);
    }
    return failures.length === 0 ? 0 : 1;
  },
};
