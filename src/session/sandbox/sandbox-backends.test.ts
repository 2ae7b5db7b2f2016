import { expect, test } from "vitest";
import { CountedBackend } from "../../../test/counted-sandbox.ts";
import { checkBackendName, registerSandboxBackend, sandboxBackend } from "./sandbox-backends.ts";

test("a backend is created once, on first use", async () => {
  const backend = new CountedBackend();
  let made = 0;
  registerSandboxBackend("made-once", async () => {
    made += 1;
    return backend;
  });
  expect(made).toBe(0);
  expect(await Promise.all([sandboxBackend("made-once"), sandboxBackend("made-once")])).toEqual([backend, backend]);
  expect(made).toBe(1);
});

test("a backend that could not be created is tried again", async () => {
  const backend = new CountedBackend();
  let tries = 0;
  registerSandboxBackend("made-later", () => {
    tries += 1;
    if (tries === 1) throw new Error("not installed");
    return backend;
  });
  await expect(sandboxBackend("made-later")).rejects.toThrow("not installed");
  expect(await sandboxBackend("made-later")).toBe(backend);
});

test("registering a name again replaces the backend", async () => {
  const [old, next] = [new CountedBackend(), new CountedBackend()];
  registerSandboxBackend("replaced", () => old);
  expect(await sandboxBackend("replaced")).toBe(old);
  registerSandboxBackend("replaced", () => next);
  expect(await sandboxBackend("replaced")).toBe(next);
});

test.for<unknown>(["nowhere", "constructor", "", undefined, 5])(
  "the name %j, which nobody registered, is refused",
  async (name) => {
    expect(() => checkBackendName(name)).toThrow(
      /There is no sandbox backend ".*Add yours with registerSandboxBackend\.$/,
    );
    await expect(sandboxBackend(name as string)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  },
);

test("a backend needs a name and a function", () => {
  expect(() => registerSandboxBackend("", () => new CountedBackend())).toThrow(/needs a name/);
  expect(() => registerSandboxBackend("x", {} as never)).toThrow(/and a function that makes it\.$/);
});
