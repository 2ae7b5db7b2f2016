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
import { type ChatCommand, idFrom, saying } from "./chat-command.ts";
import { type ChatOutput, notice } from "./chat-output.ts";
import type { ChatSession } from "./chat-session.ts";
import { exportToFile } from "./export-to-file.ts";
import { modelName } from "./model-name.ts";
import { describeQuestions } from "./open-run-words.ts";
import { describeSpending } from "./describe-spending.ts";

/** The commands that mark places, tell what the model sees and what it cost, and go on with what was interrupted. */
export const RECORD_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  checkpoint: {
    usage: "/checkpoint [files]",
    summary: "Mark where the session stands; with the word files, hold those of the workspace, too.",
    on: "session",
    run: saying(async (chat, given, { id }) => {
      if (given !== "" && given !== "files") throw notFiles(given);
      const made = await (given === ""
        ? chat.manager.checkpoint(id)
        : checkpointWithFiles(chat.manager, id, inWorkspace(chat)));
      return `Checkpoint ${made.id}${given === "" ? "" : ", with the files"}`;
    }),
  },
  checkpoints: {
    usage: "/checkpoints",
    summary: "List the checkpoints, those made automatically too.",
    on: "session",
    run: saying(async (chat, _argument, { id, store }) => {
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
    summary: "Go back to a checkpoint; nothing is erased. With the word files, bring back those that it holds, too.",
    argument: "needed",
    on: "session",
    run: saying(async (chat, given, { id, store }) => {
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
      return `Back at checkpoint ${checkpointId}, with its files; checkpoint ${kept.id} holds what they were.`;
    }),
  },
  approvals: {
    usage: "/approvals",
    summary: "List the calls that wait for your word.",
    on: "session",
    run: saying(async (_chat, _argument, tree) => {
      const waiting = questionsOf(await openRunsOf(tree.store, await tree.refresh()));
      return waiting.length === 0 ? "No call waits for your word." : describeQuestions(waiting);
    }),
  },
  approve: {
    usage: "/approve [number] [note]",
    summary: "Let a call run that waits for your word, and go on.",
    on: "session",
    run: (chat, given, tree) => answer(chat, tree, given, true),
  },
  deny: {
    usage: "/deny [number] [reason]",
    summary: "Refuse a call that waits for your word, and go on.",
    on: "session",
    run: (chat, given, tree) => answer(chat, tree, given, false),
  },
  context: {
    usage: "/context",
    summary: "Show what the model sees next, and how many tokens that is.",
    on: "session",
    run: saying(async (chat, _argument, tree) => {
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
    summary: "Show what this branch and the whole session have spent.",
    on: "session",
    run: saying(async (_chat, _argument, tree) => {
      const { path, usage, cost } = await tree.refresh();
      const line = (what: string, spent: { readonly usage: Usage; readonly cost: number }) =>
        `${what}: ${describeSpending(spent.usage, spent.cost)}`;
      return [line("This branch", path), line("Everything, summaries too", { usage, cost })].join("\n");
    }),
  },
  export: {
    usage: "/export <file>",
    summary: "Write the session to a new file: .md and .html to read, .jsonl to import.",
    argument: "needed",
    on: "session",
    run: (chat, path, tree) =>
      chat.turns.stoppable(async function* (signal) {
        await exportToFile(tree, path, signal);
        yield notice(`The session is in ${path}.`);
      }),
  },
  recover: {
    usage: "/recover",
    summary: "Go on with a run that was interrupted, has its answers, or waits to begin.",
    on: "session",
    run: (chat, _argument, tree) => chat.recover(tree),
  },
};

/** The tools of a chat act in its workspace, wherever the session was before. */
function inWorkspace({ workspace }: ChatSession): SessionFilesOptions {
  return { placeOf: () => ({ backend: "local", spec: workspace }) };
}

function notFiles(given: string): SessionError {
  return new SessionError("INVALID_OPTION", `Write /checkpoint or /checkpoint files, not ${show(given)}.`);
}

function describeMessage(message: Message): string {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []).map(({ name }) => `[${name}]`) : [];
  const said = printable([textOf(message.content), ...calls].join(" "), 80);
  return `${String(messageTokens(message)).padStart(7)}  ${message.role}: ${said}`;
}

/** Answers a question of a run that nobody has, and goes on with the run once all have an answer. */
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
