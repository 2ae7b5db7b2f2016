import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { SessionManager } from "../../src/index.ts";
import { localBackend } from "../../src/sandboxes/local/index.ts";
import { skipBecause } from "../skip.ts";
import type { SkeinServer } from "../../src/http/index.ts";
import { checkServerLimits } from "../../src/http/server/gate/check-server-limits.ts";
import { sendRequest } from "./server-support.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const guide = readFileSync(join(root, "docs/guides/running-it-for-others.md"), "utf8");
const [, code = ""] = /```ts\n([\s\S]*?)```/.exec(guide) ?? [];
const { publicKey, privateKey } = await generateKeyPair("EdDSA");
const keys = createServer(async (_request, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "one", alg: "EdDSA" }] }));
});
let folder: string;

beforeAll(async () => {
  mkdirSync(join(root, ".cache"), { recursive: true });
  folder = mkdtempSync(join(root, ".cache/guide-"));
  keys.listen(0, "127.0.0.1");
  await once(keys, "listening");
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  keys.closeAllConnections();
  keys.close();
  await once(keys, "close");
});

function tokenFor(sub: string, role: string): Promise<string> {
  return new SignJWT({ role })
    .setProtectedHeader({ alg: "EdDSA", kid: "one" })
    .setSubject(sub)
    .setAudience("skein")
    .setExpirationTime("1h")
    .sign(privateKey);
}

/** The guide's program, with the sources, generated keys and temporary files. */
async function load(): Promise<{ readonly server: SkeinServer; readonly manager: SessionManager }> {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    exports: Record<string, { default: string }>;
  };
  const onSources = code
    .replace(/from "skein(?<door>[^"]*)"/g, (_match, door: string) => {
      const built = exports[`.${door}`]?.default ?? "";
      return `from "${join(root, built.replace("./dist/", "src/").replace(/\.js$/, ".ts"))}"`;
    })
    .replace("https://sign-in.example.org", `http://127.0.0.1:${(keys.address() as AddressInfo).port}`)
    .replaceAll("./data", join(folder, "data"));
  mkdirSync(join(folder, "data/work"), { recursive: true });
  const file = join(folder, "serve.ts");
  writeFileSync(file, `${onSources}\nexport { manager, server };\n`);
  return (await import(file)) as Awaited<ReturnType<typeof load>>;
}

test("the guide's server accepts callers that its sign-in accepts, with the rights of their role, and nobody else", async (context) => {
  await localBackend
    .open({ isolation: "required" })
    .then((sandbox) => sandbox.close())
    .catch((error: Error) => skipBecause(context, error.message));
  vi.stubEnv("OPENAI_API_KEY", "none is used here");
  const { server, manager } = await load();
  const ask = async (token?: string) =>
    (await sendRequest(`${server.url}/api/me`, "GET", undefined, token === undefined ? {} : { token })).body;
  expect(await ask(await tokenFor("ann", "lead"))).toEqual({
    userId: "ann",
    admin: false,
    may: { approve: true, run: true, files: true },
  });
  expect(await ask(await tokenFor("eve", "guest"))).toMatchObject({ userId: "eve", may: { approve: false } });
  expect(await ask()).toMatchObject({ status: 401 });
  expect(await ask(`${await tokenFor("ann", "lead")}x`)).toMatchObject({ status: 401 });
  const token = await tokenFor("ann", "lead");
  const made = await sendRequest(`${server.url}/api/sessions`, "POST", {}, { token });
  expect(made.status).toBe(201);
  await server.close();
  await manager[Symbol.asyncDispose]();
  await manager.store.close();
});

const units: Readonly<Record<string, number>> = { GiB: 1024 ** 3, MiB: 1024 * 1024, KiB: 1024, s: 1000 };

test("the guide's table of limits has all defaults of the code", () => {
  const rows = [...guide.matchAll(/^\| `limits` \| (.*?) \| (.*?) \|/gm)];
  const told = rows.flatMap(([, names = "", values = ""]) => {
    const found = [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name);
    const given = [...values.matchAll(/([\d,]*\d)(?: (GiB|MiB|KiB|s)\b)?/g)].map(
      ([, digits = "", unit = ""]) => Number(digits.replaceAll(",", "")) * (units[unit] ?? 1),
    );
    return found.map((name, index) => [name, name === "rate" ? given : given[index]] as const);
  });
  const { rate, ...limits } = checkServerLimits({}, true);
  expect(Object.fromEntries(told)).toEqual({ ...limits, rate: [rate?.requestsPerSecond, rate?.burst] });
});
