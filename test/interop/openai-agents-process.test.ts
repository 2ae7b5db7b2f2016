import { execFile, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openStore } from "../../src/stores/open-store.ts";
import { openModelServer, type Replay } from "../model-server.ts";

const run = promisify(execFile);
const program = fileURLToPath(new URL("programs/agents-run.mjs", import.meta.url));

/** An answer as a stream of chat completions. */
function streamed(delta: object, finish: string): Replay {
  const chunk = (choice: object) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "a-model", choices: [choice] })}\n\n`;
  return {
    body: `${chunk({ index: 0, delta: { role: "assistant", ...delta } })}${chunk({ index: 0, delta: {}, finish_reason: finish })}data: [DONE]\n\n`,
  };
}

const calls = (id: string, name: string, given: object) =>
  streamed(
    { tool_calls: [{ index: 0, id, type: "function", function: { name, arguments: JSON.stringify(given) } }] },
    "tool_calls",
  );

test("after a run with tools and a hand-off, a killed next run is repeated in another process", async () => {
  const folder = await mkdtemp(join(tmpdir(), "skein-agents-"));
  const url = `sqlite:${join(folder, "skein.db")}`;
  await using server = await openModelServer(
    calls("call-1", "weather", { place: "Bergen" }),
    calls("call-2", "transfer_to_Booker", {}),
    streamed({ content: "A room in Bergen is booked." }, "stop"),
    calls("call-3", "weather", { place: "Oslo" }),
    { after: "hang" },
    streamed({ content: "It is for two nights." }, "stop"),
  );
  const first = await run(process.execPath, [program, url, server.url, "Book a room where it rains."]);
  expect(first.stdout.trim()).toBe("A room in Bergen is booked.");
  const killed = spawn(process.execPath, [program, url, server.url, "For how long?"], { stdio: "ignore" });
  await expect.poll(() => server.asked.length).toBe(5);
  const gone = new Promise((resolve) => killed.once("exit", resolve));
  killed.kill("SIGKILL");
  await gone;
  // The SDK adds a run's items at its end: the killed run is asked again, on the items before it.
  const next = await run(process.execPath, [program, url, server.url, "For how long?"]);
  expect(next.stdout.trim()).toBe("It is for two nights.");
  const said = (server.asked[5]?.body["messages"] ?? []) as readonly { role: string; content?: unknown }[];
  expect(said.map(({ role }) => role).join()).toBe("system,user,assistant,tool,assistant,tool,assistant,user");
  const text = JSON.stringify(said);
  for (const words of ["where it rains.", "It rains in Bergen.", "A room in Bergen is booked.", "For how long?"]) {
    expect(text.split(words).length).toBe(2);
  }
  await using store = await openStore(url);
  expect((await store.search('"it rains in bergen"')).map(({ head }) => head.header.id)).toEqual(["trip"]);
  await rm(folder, { recursive: true, force: true });
});
