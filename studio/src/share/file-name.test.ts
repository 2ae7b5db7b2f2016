import { expect, test } from "vitest";
import { fileNameOf } from "./file-name.ts";

test("names a file after the session, in characters that every system accepts", () => {
  expect(fileNameOf({ name: "Plan a trip!", firstMessage: null }, "html")).toBe("plan-a-trip.html");
  expect(fileNameOf({ name: "../../etc/passwd\u202Elmth.exe", firstMessage: null }, "markdown")).toBe(
    "etc-passwdlmth-exe.md",
  );
  expect(fileNameOf({ name: "Ölpreis für Zürich", firstMessage: null }, "jsonl")).toBe("ölpreis-für-zürich.jsonl");
  expect(fileNameOf({ name: "***", firstMessage: null }, "jsonl")).toBe("session.jsonl");
  expect(fileNameOf({ name: "x".repeat(500), firstMessage: null }, "html")).toHaveLength(65);
});
