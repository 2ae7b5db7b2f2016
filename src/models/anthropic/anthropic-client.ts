import { SessionError } from "../../session/errors.ts";
import type { ClientCall } from "../wire/wire-model.ts";

/** What is needed of a client of the `@anthropic-ai/sdk` package; a caller's own may be given. */
export interface AnthropicClient {
  readonly timeout?: number;
  readonly messages: { create(body: object, call: ClientCall): PromiseLike<unknown> };
}

/** How a client is set up. */
export interface AnthropicClientOptions {
  readonly apiKey: string;
  readonly baseURL?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Makes a client of the `@anthropic-ai/sdk` package. @throws {SessionError} `DRIVER_MISSING` when it is not installed. */
export async function loadAnthropicClient(options: AnthropicClientOptions): Promise<AnthropicClient> {
  const { default: Anthropic } = await loadAnthropic();
  const { apiKey, baseURL, headers } = options;
  const client = new Anthropic({
    apiKey,
    // Else a token of the environment would go along with the key that was chosen.
    authToken: null,
    ...(baseURL === undefined ? {} : { baseURL }),
    ...(headers === undefined ? {} : { defaultHeaders: { ...headers } }),
    maxRetries: 0,
    // What goes wrong is thrown; a library that prints it as well would print parts of conversations.
    logLevel: "off",
  });
  return client as AnthropicClient;
}

async function loadAnthropic(): Promise<typeof import("@anthropic-ai/sdk")> {
  try {
    return await import("@anthropic-ai/sdk");
  } catch (cause) {
    throw new SessionError(
      "DRIVER_MISSING",
      "Models of anthropic need its client: install the package @anthropic-ai/sdk, version 0.135 or later.",
      { cause },
    );
  }
}
