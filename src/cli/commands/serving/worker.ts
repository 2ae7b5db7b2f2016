import { once } from "node:events";
import { SessionError } from "../../../index.ts";
import { bullmqQueue } from "../../../workers/bullmq-queue.ts";
import { startWorker, type WorkerInit } from "../../../workers/index.ts";
import { AGENTS_OPTION, loadAgents } from "./agents-file.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { offeredModels } from "../../options/offered-models.ts";
import { ageOption, countOption } from "../../options/option-values.ts";
import { ASK_OPTIONS, askOption } from "../../options/ask-option.ts";
import { openServiceManager } from "../../open-manager.ts";
import { workspaceAt } from "../../options/workspace-option.ts";

/** Executes runs that servers request. */
export const worker: Command = {
  name: "worker",
  summary: "Execute runs that servers request, on any number of machines, until stopped with Ctrl-C or SIGTERM.",
  details:
    "Workers and servers share a store that several machines can use (PostgreSQL or Redis), and a queue. The queue only carries notifications: the runs are in the store, so an emptied queue loses nothing. When a worker dies, another one continues its runs after the lease has ended. Tools are isolated, and work in a separate directory for each user below the workspace. The first SIGTERM or Ctrl-C hands runs over to other workers at the end of their round; a second one stops right away.",
  arguments: [],
  options: {
    queue: { value: "URL", what: "the queue that servers notify: redis://host:6379 or postgres://host/database" },
    agents: AGENTS_OPTION,
    concurrency: { value: "N", default: "32", what: "how many runs it executes in parallel" },
    "runs-per-user": { value: "N", default: "10", what: "how many of them may belong to one user" },
    lease: { value: "AGE", default: "30s", what: "how long its runs stay reserved after it has died" },
    "park-after": {
      value: "SECONDS",
      default: "30",
      what: "how long a run waits for an approval before it parks and releases its session",
    },
    webhook: { value: "URL", what: "the URL that is posted to when a run parks" },
    workspace: {
      value: "DIRECTORY",
      what: "the directory that the workspace tools work in; without it, agents have no workspace tools",
    },
    ...ASK_OPTIONS,
    drain: { value: "AGE", default: "30s", what: "how long a round may continue after the worker was stopped" },
    "worker-name": { value: "NAME", what: "the name of the worker (default: its host and process id)" },
  },
  examples: [
    {
      line: "skein worker --store postgres://db/skein --queue redis://queue:6379 --agents ./agents.mjs --concurrency 8",
      what: "eight parallel runs, with the agents of a module",
    },
  ],
  json: { name: "the name of the worker", agents: "the names of its agents", groups: "the names of its groups" },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal, fail } = context;
    const [queueUrl, file] = [textOption(values, "queue"), textOption(values, "agents")];
    if (queueUrl === undefined || file === undefined) {
      throw new SessionError("INVALID_OPTION", "worker needs --queue and --agents; see skein worker --help.");
    }
    const { agents, models, groups } = await loadAgents(file);
    const offered = await offeredModels();
    const options = await optionsOf(context);
    const drainMs = (ageOption(values, "drain") ?? 30) * 1000;
    await using store = await context.openStore();
    await using manager = openServiceManager(store);
    const queue = bullmqQueue({ url: queueUrl });
    try {
      const started = await startWorker({
        ...options,
        manager,
        queue,
        agents,
        groups: groups(manager),
        models: [...models, ...offered.models],
        onError: (error) => fail(error instanceof Error ? error.message : String(error)),
      });
      const { name, ...offers } = started.view;
      if (context.json) context.printJson({ name, agents: offers.agents, groups: offers.groups });
      else
        context.print(`Worker ${name} runs ${[...offers.agents, ...offers.groups].join(", ")}; press Ctrl-C to stop.`);
      if (!signal.aborted) await once(signal, "abort");
      await started.close({ drainMs });
    } finally {
      await queue.close();
    }
    return 0;
  },
};

type Options = Pick<
  WorkerInit,
  "concurrency" | "maxRunsPerUser" | "leaseMs" | "park" | "webhook" | "place" | "ask" | "name"
>;

async function optionsOf({ values }: CommandContext): Promise<Options> {
  const [concurrency, maxRunsPerUser] = [countOption(values, "concurrency"), countOption(values, "runs-per-user")];
  const [lease, parkAfter] = [ageOption(values, "lease", 1), countOption(values, "park-after", 0)];
  const [webhook, workspace] = [textOption(values, "webhook"), textOption(values, "workspace")];
  const name = textOption(values, "worker-name");
  return {
    ask: askOption({ values }),
    ...(concurrency !== undefined && { concurrency }),
    ...(maxRunsPerUser !== undefined && { maxRunsPerUser }),
    ...(lease !== undefined && { leaseMs: lease * 1000 }),
    ...(parkAfter !== undefined && { park: { afterMs: parkAfter * 1000 } }),
    ...(webhook !== undefined && { webhook: { url: webhook } }),
    ...(workspace !== undefined && {
      place: { backend: "local", spec: { workingDir: await workspaceAt(workspace, values) } },
    }),
    ...(name !== undefined && { name }),
  };
}
