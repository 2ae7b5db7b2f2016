import { readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { importsOf } from "../architecture/imports.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");

test.for([
  {
    door: "client",
    shares: [
      "src/http/tree-node.ts",
      "src/internal/cut-text.ts",
      "src/internal/trim-text.ts",
      "src/internal/uuid.ts",
      "src/session/log/entry.ts",
      "src/session/message.ts",
    ],
  },
  {
    door: "ui",
    shares: [
      "src/agent/answer-reducer.ts",
      "src/agent/deduped-text.ts",
      "src/http/chat-wire.ts",
      "src/http/client/client-error.ts",
      "src/http/client/event-parser.ts",
      "src/http/handler-of.ts",
      "src/http/shown-turn.ts",
      "src/internal/defined.ts",
      "src/internal/nearest.ts",
      "src/session/check-arguments.ts",
      "src/session/errors.ts",
      "src/session/log/open-runs.ts",
      "src/session/message.ts",
    ],
  },
])("skein/$door loads no module of Node, no package, and nothing of the server", ({ door, shares }) => {
  const reached = new Set([`src/http/${door}/index.ts`]);
  const foreign: string[] = [];
  for (const path of reached) {
    const text = readFileSync(join(root, path), "utf8");
    for (const { specifier, kind } of importsOf(text)) {
      if (kind === "type") continue;
      if (specifier?.startsWith(".")) reached.add(posix.join(posix.dirname(path), specifier));
      else foreign.push(`${path} loads ${specifier}`);
    }
    // Globals of Node must not be used without an import either.
    for (const [name] of text.matchAll(/\b(?:process|Buffer|__dirname|setImmediate|require|NodeJS)\b(?=[.(])/g)) {
      foreign.push(`${path} uses ${name}`);
    }
  }
  expect(foreign).toEqual([]);
  // Beside its own files: code that server and client share, and the pure core below it.
  expect([...reached].filter((path) => !path.startsWith(`src/http/${door}/`)).sort()).toEqual(
    ["src/http/path-segment.ts", ...shares].sort(),
  );
});
