import { messageText } from "../message-of.ts";
import { loadInstalled } from "../peers/load-installed.ts";
import type { OpenCold } from "./cold-session.ts";

/** The name of the installation in `scripts/bench.mjs`. */
export const PI_INSTALLATION = "pi-cold";

interface PiSession {
  appendMessage(message: object): string;
  buildSessionContext(): { readonly messages: readonly unknown[] };
  getSessionFile(): string | undefined;
}

interface PiModule {
  readonly SessionManager: {
    create(cwd: string, sessionDirectory: string): PiSession;
    open(path: string): PiSession;
    forkFrom(path: string, cwd: string, sessionDirectory: string): PiSession;
  };
}

const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
const ANSWERED = {
  api: "none",
  provider: "none",
  model: "none",
  usage: { ...NOTHING, totalTokens: 0, cost: { ...NOTHING, total: 0 } },
  stopReason: "stop",
};

/** The session files of the pi coding agent. */
export const openPi: OpenCold = async (folder, key) => {
  const { SessionManager } = await loadInstalled<PiModule>(PI_INSTALLATION, "@earendil-works/pi-coding-agent");
  const session = key === null ? SessionManager.create(folder, folder) : null;
  const path = key ?? session?.getSessionFile();
  if (path === undefined) throw new Error("pi has made no session file.");
  return {
    key: path,
    async append(messages) {
      for (let index = 0; index < messages; index++) session?.appendMessage(messageAt(index));
    },
    context: async () => SessionManager.open(path).buildSessionContext().messages.length,
    fork: async () => void SessionManager.forkFrom(path, folder, folder),
    async close() {},
  };
};

function messageAt(index: number): object {
  const content = [{ type: "text", text: messageText(index) }];
  const timestamp = Date.now();
  return index % 2 === 0
    ? { role: "user", content, timestamp }
    : { role: "assistant", content, ...ANSWERED, timestamp };
}
