import { expect, test } from "vitest";
import type { Message } from "../../session/message.ts";
import { ModelError, type ModelFailure } from "./model-error.ts";
import { nameAttachments } from "./name-attachments.ts";

const part = (name: string | undefined, bytes: number) =>
  ({
    type: "image",
    mediaType: "image/png",
    data: Buffer.alloc(bytes).toString("base64"),
    ...(name === undefined ? {} : { name }),
  }) as const;
const messages: readonly Message[] = [
  { role: "user", content: [part("small.png", 30), part("receipt.png", 3000)] },
  { role: "user", content: [part(undefined, 300)] },
];

function failure(kind: ModelFailure, message: string, status?: number): ModelError {
  return new ModelError(kind, message, { provider: "p", ...(status === undefined ? {} : { status }) });
}

test.each([
  failure("invalid_request", "p refuses the request (400): image exceeds 5 MB maximum.", 400),
  failure("context_overflow", "The request is longer than the model of p can take (413): too large.", 413),
  failure("invalid_request", "p refuses the request: The document has too many pages."),
])("the error of a provider that takes less media names the largest attachments of the request: $message", (error) => {
  const named = nameAttachments(error, messages) as ModelError;
  expect(named.message).toBe(
    `${error.message} The images and files of the request have 3330 bytes; the largest: "receipt.png" (3000 bytes), "image without a name, image/png" (300 bytes), "small.png" (30 bytes).`,
  );
  expect([named.kind, named.status, named.provider]).toEqual([error.kind, error.status, "p"]);
});

test.each([
  failure("invalid_request", "p refuses the request (400): unknown tool.", 400),
  failure("rate_limit", "p asks to slow down (429): too many requests.", 429),
  new Error("the image is too large"),
])("any other error of a model stays as it is: $message", (error) => {
  expect(nameAttachments(error, messages)).toBe(error);
});

test("an error of a request without attachments stays as it is", () => {
  const error = failure("invalid_request", "p refuses the request (400): the request is too large.", 400);
  expect(nameAttachments(error, [{ role: "user", content: "Hello." }])).toBe(error);
});
