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

/** Runs what is asked for elsewhere. */
export const worker: Command = {
  name: "worker",
  summary: "Run what servers are asked for, on as many machines as you like, until it is told to stop.",
  details:
    "Workers and servers share a store that several machines can use (PostgreSQL or Redis) and a queue, which only says that something waits: what there is to do is in the store, and an emptied queue loses nothing. A worker that dies is taken over when its lease ends. Tools act below the workspace in a directory of each user's own, isolated. The first SIGTERM or Ctrl-C hands runs over to other workers at the end of their round; a second one does not wait.",
  arguments: [],
  options: {
    queue: { value: "URL", what: "where servers send notifications: redis://host:6379 or postgres://host/database" },
    agents: AGENTS_OPTION,
    concurrency: { value: "N", default: "32", what: "how many runs it has at once" },
    "runs-per-user": { value: "N", default: "10", what: "how many of them may be one user's" },
    lease: { value: "AGE", default: "30s", what: "how long others wait for its runs when it has died" },
    "park-after": {
      value: "SECONDS",
      default: "30",
      what: "how long a run waits for an answer before it lets go of its session, and goes on after the answer",
    },
    webhook: { value: "URL", what: "where to post that a run has parked and waits for an answer" },
    workspace: { value: "DIRECTORY", what: "where the tools of the agents act; without it they have none" },
    ...ASK_OPTIONS,
    drain: { value: "AGE", default: "30s", what: "how long a round may go on after it was told to stop" },
    "worker-name": { value: "NAME", what: "what it is called where workers are shown (default: its host and process)" },
  },
  examples: [
    {
      line: "skein worker --store postgres://db/skein --queue redis://queue:6379 --agents ./agents.mjs --concurrency 8",
      what: "eight runs at once, of the agents in a file",
    },
  ],
  json: { name: "what it is called", agents: "the names of the agents that it runs", groups: "those of the groups" },
  store: "made",
  runsTools: true,
  async run(context) {
    const { values, signal, fail } = context;
    const [queueUrl, file] = [textOption(values, "queue"), textOption(values, "agents")];
    if (queueUrl === undefined || file === undefined) {
      throw new SessionError("INVALID_OPTION", "A worker needs --queue and --agents; skein worker --help shows how.");
    }
    const { agents, models, groups } = await loadAgents(file);
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
        models: [...models, ...offeredModels()],
        onError: (error) => fail(error instanceof Error ? error.message : String(error)),
      });
      const { name, ...offers } = started.view;
      if (context.json) context.printJson({ name, agents: offers.agents, groups: offers.groups });
      else
        context.print(`Worker ${name} runs ${[...offers.agents, ...offers.groups].join(", ")}; stop it with Ctrl-C.`);
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
