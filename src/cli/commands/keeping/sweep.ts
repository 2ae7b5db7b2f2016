import { counted } from "../../terminal.ts";
import { SessionError, SessionManager } from "../../../index.ts";
import { sessionConfigFromEnvironment } from "../../../lifecycle/config-from-environment.ts";
import type { Command } from "../../command.ts";
import { ageOption, countOption } from "../../options/option-values.ts";

/** Records which sessions have expired. */
export const sweep: Command = {
  name: "sweep",
  summary: "Put on record which sessions were idle for too long: they expire, and take no more turns.",
  arguments: [],
  options: {
    idle: { value: "AGE", what: "how long is too long, as in 24h; it must be given" },
    limit: { value: "N", default: "10000", what: "at most so many sessions" },
  },
  examples: [{ line: "skein sweep --idle 7d", what: "end what nobody has touched for a week" }],
  json: { expired: "how many sessions expired", failures: "sessions that could not be: sessionId, message" },
  store: "existing",
  async run(context) {
    const { values } = context;
    const config = sessionConfigFromEnvironment();
    const sessionTtl = ageOption(values, "idle", 1);
    if (sessionTtl === undefined) {
      const message = "Sessions expire for good, so say how long is too long: --idle 24h, or any other time.";
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
