import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Asked, lastText, openChatModel } from "./chat-model.ts";
import { openProduct, type Product, type Program } from "./product.ts";

function answer(asked: Asked) {
  const said = lastText(asked);
  const role = asked.messages.at(-1)?.role;
  if (role === "tool") return /interrupted/.test(said) ? "I do not know whether it was published." : "I have read it.";
  const [, file] = /^Read (\S+)\.$/.exec(said) ?? [];
  if (file !== undefined) return [{ name: "read_workspace_file", arguments: { path: file } }];
  if (said === "Publish it.") return [{ name: "publish", arguments: { version: "1.0.0" } }];
  if (asked.tools === undefined) return "They read files.";
  return `You said: ${said}`;
}

/** A registry that accepts the publication, and does not answer the first time. */
async function openRegistry(): Promise<AsyncDisposable & { readonly url: string; readonly published: string[] }> {
  const published: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    if (published.push(url) > 1) response.end();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    published,
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A terminal with the agent in it: each input is answered before the next prompt. */
function openTerminal(product: Product, cwd: string): { program: Program; type: (line: string) => Promise<string> } {
  const program = product.start([join(product.folder, "agent.mjs")], { cwd });
  const prompted = (text: string): boolean => /> $|\[y\/N\] $/.test(text);
  return {
    program,
    async type(line) {
      const { length } = await program.until(prompted);
      program.child.stdin.write(`${line}\n`);
      return (await program.until((text) => prompted(text.slice(length)))).slice(length);
    },
  };
}

test("the coding agent works as its documents say: streaming, compaction, kill -9 in a tool, fork, merge, cost", async () => {
  await using model = await openChatModel(answer);
  await using registry = await openRegistry();
  const env = { MODEL_URL: model.url, REGISTRY: registry.url, OPENAI_API_KEY: "" };
  await using product = await openProduct("coding-agent", ["zod", "openai"], env);
  const cwd = join(product.folder, "project");
  await mkdir(cwd);
  for (const name of ["one", "two", "three"]) await writeFile(join(cwd, `${name}.txt`), "word ".repeat(9_000));

  const first = openTerminal(product, cwd);
  expect(await first.type("Hello?")).toBe("You said: Hello?\n> ");
  for (const name of ["one", "two"]) {
    expect(await first.type(`Read ${name}.txt.`)).toBe("* read_workspace_file\nI have read it.\n> ");
  }
  // The context no longer fits with the next file.
  expect(await first.type("Read three.txt.")).toContain("(The beginning is summed up.)");
  expect(await first.type("Publish it.")).toBe('publish {"version":"1.0.0"}? [y/N] ');
  first.program.child.stdin.write("y\n");
  await expect.poll(() => registry.published).toEqual(["/1.0.0"]);
  first.program.child.kill("SIGKILL");
  expect(await first.program.ended).toBe("SIGKILL");

  // Other programs are refused, and write nothing.
  const skein = join(product.folder, "node_modules/skein/dist/cli/skein.js");
  const log = (): Promise<string> => product.run([skein, "export", "last", "--format", "jsonl"]);
  const before = await log();
  const reviewer = join(product.folder, "reviewer.mjs");
  expect(await product.run([reviewer, "reviewer"])).toMatch(/^AGENT_NOT_FOUND: .*"coder"/);
  expect(await product.run([reviewer, "coder"])).toMatch(/^TOOL_NOT_FOUND: .*"publish"/);
  const recover = product.start([skein, "recover", "last", "--model", "offline/offline"], { cwd });
  recover.child.stdin.end();
  expect(await recover.ended).toBe(1);
  expect(recover.printed()).toMatch(/"coder"/);
  expect(await log()).toBe(before);

  // The program itself continues, and publishes nothing twice.
  const second = openTerminal(product, cwd);
  expect(await second.type("/cost")).toMatch(/^\d+ tokens, \$0\.\d{4}\n> $/);
  expect(second.program.printed()).toContain("I do not know whether it was published.\n> ");
  expect(registry.published).toEqual(["/1.0.0"]);

  const costOf = async (): Promise<number> => Number(/\$([\d.]+)/.exec(await second.type("/cost"))?.[1]);
  const cost = await costOf();
  await second.type("/fork try");
  expect(await second.type("Shorter?")).toBe("You said: Shorter?\n> ");
  const withFork = await costOf();
  expect(withFork).toBeGreaterThan(cost);
  expect(await second.type("/merge")).toBe("2 entries merged.\n> ");
  expect(await costOf()).toBe(withFork);
  expect(await second.type("Longer?")).toBe("You said: Longer?\n> ");
  const said = model.asked.at(-1)?.messages.map(({ content }) => content);
  expect(said).toEqual(expect.arrayContaining(["Shorter?", "You said: Shorter?", "Longer?"]));
  second.program.child.stdin.write("/quit\n");
  expect(await second.program.ended).toBe(0);
});
