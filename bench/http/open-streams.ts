import { get, type IncomingMessage } from "node:http";

/** Open event streams. */
export interface OpenStreams extends Disposable {
  /** Resolves when each stream has received this text. */
  saw(text: string): Promise<void>;
}

const SEEN_MS_MAX = 60_000;
/** More at the same time would exceed the backlog of the listening socket and be retried. */
const OPENED_AT_ONCE = 100;

/**
 * Opens the event stream of each URL, each over a separate connection; resolves when all have sent their start
 * position.
 */
export async function openStreams(urls: readonly string[]): Promise<OpenStreams> {
  const streams: OpenStream[] = [];
  for (let from = 0; from < urls.length; from += OPENED_AT_ONCE) {
    const opened = urls.slice(from, from + OPENED_AT_ONCE).map((url) => OpenStream.open(url));
    streams.push(...(await Promise.all(opened)));
  }
  const saw = async (text: string): Promise<void> => {
    await Promise.all(streams.map((stream) => stream.saw(text)));
  };
  await saw("id: ");
  return {
    saw,
    [Symbol.dispose]: () => {
      for (const stream of streams) stream.leave();
    },
  };
}

class OpenStream {
  readonly #response: IncomingMessage;
  #text = "";
  #look: () => void = () => {};

  private constructor(response: IncomingMessage) {
    this.#response = response;
    response.setEncoding("utf8").on("data", (chunk: string) => {
      this.#text += chunk;
      this.#look();
    });
    // Closing a connection during a response is an error for the reader.
    response.on("error", () => {});
  }

  static open(url: string): Promise<OpenStream> {
    return new Promise((resolve, reject) => {
      const request = get(url, { agent: false }, (response) => {
        if (response.statusCode === 200) resolve(new OpenStream(response));
        else reject(new Error(`An event stream was answered with ${response.statusCode}.`));
      });
      request.once("error", reject);
    });
  }

  saw(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`A stream has not had ${text} in it.`)), SEEN_MS_MAX);
      this.#look = () => {
        if (!this.#text.includes(text)) return;
        clearTimeout(timer);
        resolve();
      };
      this.#look();
    });
  }

  leave(): void {
    this.#response.destroy();
  }
}
