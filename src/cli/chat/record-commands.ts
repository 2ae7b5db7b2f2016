import {
  CheckpointNotFoundError,
  type Message,
  SessionError,
  type SessionTree,
  textOf,
  type Usage,
} from "../../index.ts";
import { messageTokens } from "../../session/context/tokens.ts";
import { openRunsOf } from "../../lifecycle/runs/list-runs.ts";
import {
  checkpointWithFiles,
  restoreWithFiles,
  type SessionFilesOptions,
} from "../../lifecycle/checkpoints/session-files.ts";
import { show } from "../../session/errors.ts";
import { AT_TERMINAL } from "../open-manager.ts";
import { describeQuestion, pickQuestion, questionsOf } from "../open-questions.ts";
import { printable } from "../terminal.ts";
import { type ChatCommand, idFrom, textCommand } from "./chat-command.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";
import { exportToFile } from "./export-to-file.ts";
import { modelName } from "./model-name.ts";
import { describeQuestions } from "./describe-open-runs.ts";
import { describeUsage } from "./describe-usage.ts";

/** The commands for checkpoints, approvals, context, cost, export and recovery. */
export const RECORD_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  checkpoint: {
    usage: "/checkpoint [files]",
    summary: "Make a checkpoint of the session; with the word files, also of the workspace files.",
    on: "session",
    run: textCommand(async (chat, given, { id }) => {
      if (given !== "" && given !== "files") throw notFiles(given);
      const made = await (given === ""
        ? chat.manager.checkpoint(id)
        : checkpointWithFiles(chat.manager, id, inWorkspace(chat)));
      return `Checkpoint ${made.id}${given === "" ? "" : ", with the files"}`;
    }),
  },
  checkpoints: {
    usage: "/checkpoints",
    summary: "List the checkpoints, including automatic ones.",
    on: "session",
    run: textCommand(async (chat, _argument, { id, store }) => {
      const checkpoints = await store.listCheckpoints(id);
      chat.listed.checkpoints = checkpoints.map((checkpoint) => checkpoint.id);
      if (checkpoints.length === 0) return "There are no checkpoints; /checkpoint makes one.";
      return checkpoints
        .map(
          ({ id: each, createdAt, version, sandboxSnapshot }, index) =>
            `${index + 1} ${each}  ${createdAt}, at ${version} entries${sandboxSnapshot === undefined ? "" : ", with files"}`,
        )
        .join("\n");
    }),
  },
  restore: {
    usage: "/restore <checkpoint or number> [files]",
    summary: "Go back to a checkpoint; nothing is deleted. With the word files, also restore its files.",
    argument: "needed",
    on: "session",
    run: textCommand(async (chat, given, { id, store }) => {
      const files = /\sfiles$/.exec(given);
      const named = files === null ? given : given.slice(0, files.index).trimEnd();
      const checkpointId = idFrom(chat.listed.checkpoints, named);
      const known = (await store.listCheckpoints(id)).some((checkpoint) => checkpoint.id === checkpointId);
      if (!known) throw new CheckpointNotFoundError(checkpointId);
      if (files === null) {
        await chat.manager.restore(checkpointId, { turns: false });
        return `Back at checkpoint ${checkpointId}.`;
      }
      const { kept } = await restoreWithFiles(chat.manager, checkpointId, inWorkspace(chat));
      return `Back at checkpoint ${checkpointId} and its files; checkpoint ${kept.id} has the files from before.`;
    }),
  },
  approvals: {
    usage: "/approvals",
    summary: "List the calls that wait for your approval.",
    on: "session",
    run: textCommand(async (_chat, _argument, tree) => {
      const waiting = questionsOf(await openRunsOf(tree.store, await tree.refresh()));
      return waiting.length === 0 ? "No call waits for your approval." : describeQuestions(waiting);
    }),
  },
  approve: {
    usage: "/approve [number] [note]",
    summary: "Approve a waiting call and continue the run.",
    on: "session",
    run: (chat, given, tree) => answer(chat, tree, given, true),
  },
  deny: {
    usage: "/deny [number] [reason]",
    summary: "Deny a waiting call and continue the run.",
    on: "session",
    run: (chat, given, tree) => answer(chat, tree, given, false),
  },
  context: {
    usage: "/context",
    summary: "Show the messages of the next request, with their tokens.",
    on: "session",
    run: textCommand(async (chat, _argument, tree) => {
      const { prompt } = await chat.answererFor(tree);
      const { messages } = await tree.buildContext();
      const sent: readonly Message[] = [{ role: "system", content: prompt }, ...messages];
      const total = sent.reduce((sum, message) => sum + messageTokens(message), 0);
      const { contextWindow } = chat.model;
      const room = contextWindow === undefined ? "" : ` of ${contextWindow}`;
      return [...sent.map(describeMessage), `About ${total}${room} tokens for ${modelName(chat.model)}.`].join("\n");
    }),
  },
  cost: {
    usage: "/cost",
    summary: "Show the tokens and cost of this branch and of the whole session.",
    on: "session",
    run: textCommand(async (_chat, _argument, tree) => {
      const { path, usage, cost } = await tree.refresh();
      const line = (what: string, spent: { readonly usage: Usage; readonly cost: number }) =>
        `${what}: ${describeUsage(spent.usage, spent.cost)}`;
      return [line("This branch", path), line("The session, including summaries", { usage, cost })].join("\n");
    }),
  },
  export: {
    usage: "/export <file>",
    summary: "Write the session to a new file: .md or .html for people, .jsonl for skein import.",
    argument: "needed",
    on: "session",
    run: (chat, path, tree) =>
      chat.turns.stoppable(async function* (signal) {
        await exportToFile(tree, path, signal);
        yield notice(`The session was written to ${path}.`);
      }),
  },
  recover: {
    usage: "/recover",
    summary: "Continue a run that was interrupted or answered, or start one that waits.",
    on: "session",
    run: (chat, _argument, tree) => chat.recover(tree),
  },
};

/** The tools of a chat work in its workspace, whichever directory the session belonged to. */
function inWorkspace({ workspace }: ChatSession): SessionFilesOptions {
  return { placeOf: () => ({ backend: "local", spec: workspace }) };
}

function notFiles(given: string): SessionError {
  return new SessionError(
    "INVALID_OPTION",
    `/checkpoint has no argument ${show(given)}; write /checkpoint or /checkpoint files.`,
  );
}

function describeMessage(message: Message): string {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => `[${name}]`) : [];
  const said = printable([textOf(message.content), ...calls].join(" "), 80);
  return `${String(messageTokens(message)).padStart(7)}  ${message.role}: ${said}`;
}

/** Answers a question of a parked run; continues the run after its last answer. */
async function* answer(
  chat: ChatSession,
  tree: SessionTree,
  given: string,
  approved: boolean,
): AsyncGenerator<ChatOutput> {
  const [, number, text = ""] = /^(\d{1,3})?\s*(.*)$/s.exec(given) ?? [];
  const waiting = questionsOf(await openRunsOf(tree.store, await tree.refresh()));
  const asked = pickQuestion(waiting, tree.id, number);
  const { question } = asked;
  if (approved) await chat.manager.approve(tree.id, question, text === "" ? {} : { note: text }, AT_TERMINAL);
  else await chat.manager.deny(tree.id, question, text === "" ? {} : { reason: text }, AT_TERMINAL);
  yield notice(`${approved ? "Approved" : "Denied"}: ${describeQuestion(asked)}`);
  if (waiting.length === 1) yield* chat.recover(tree);
}
