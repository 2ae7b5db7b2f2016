import type { JsonObject } from "../src/index.ts";
import {
  type ExecResult,
  registerSandboxBackend,
  type Sandbox,
  type SandboxBackend,
  type SandboxCapabilities,
  SandboxError,
  type SandboxFile,
  type SandboxSpec,
} from "../src/sandboxes/index.ts";

/** The methods of a backend or a sandbox that can be made to wait or fail. */
export type SandboxStep = "open" | "attach" | "restore" | "close" | "delete-snapshot";

let backendsMade = 0;

/** A backend whose sandboxes keep files in memory, and that counts what is opened and closed. */
export class CountedBackend implements SandboxBackend {
  readonly name: string;
  readonly capabilities: SandboxCapabilities;
  readonly specs: SandboxSpec[] = [];
  readonly attaches: string[] = [];
  /** Sandboxes that were opened and are not closed, by id. */
  readonly live = new Map<string, CountedSandbox>();
  readonly snapshots = new Map<string, ReadonlyMap<string, Uint8Array>>();
  /** Called before a sandbox is opened, attached, restored or closed; may wait or fail. */
  before: (step: SandboxStep) => Promise<void> = async () => {};
  opens = 0;
  closes = 0;
  snapshotsTaken = 0;

  constructor(capabilities: Partial<SandboxCapabilities> = {}) {
    backendsMade += 1;
    this.name = `counted-${backendsMade}`;
    this.capabilities = { snapshot: true, reattach: true, languages: [], ...capabilities };
    registerSandboxBackend(this.name, () => this);
  }

  /** From now on these steps wait until the answer's `open` is called. */
  waitAt(...steps: readonly SandboxStep[]): { open(): void } {
    const { pass, open } = gate();
    this.before = async (step) => (steps.includes(step) ? pass : undefined);
    return { open };
  }

  /** From now on this step fails. */
  failAt(step: SandboxStep, error: Error): void {
    this.before = async (each) => {
      if (each === step) throw error;
    };
  }

  async open(spec: SandboxSpec): Promise<CountedSandbox> {
    await this.before("open");
    this.opens += 1;
    this.specs.push(spec);
    const sandbox = new CountedSandbox(this, `${this.name}-${this.opens}`, spec);
    this.live.set(sandbox.id, sandbox);
    return sandbox;
  }

  async attach(id: string, spec: SandboxSpec): Promise<CountedSandbox> {
    await this.before("attach");
    this.attaches.push(id);
    const known = this.live.get(id);
    if (known === undefined || known.closing) throw new SandboxError("file_not_found", `There is no sandbox ${id}.`);
    return new CountedSandbox(this, id, spec, known.files);
  }

  async deleteSnapshot(snapshot: JsonObject): Promise<boolean> {
    await this.before("delete-snapshot");
    return this.snapshots.delete(snapshot.name as string);
  }
}

/** A sandbox of files in memory. */
export class CountedSandbox implements Sandbox {
  readonly id: string;
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly workingDir = "/";
  readonly capabilities: SandboxCapabilities;
  readonly files: Map<string, Uint8Array>;
  readonly #owner: CountedBackend;
  closed = false;
  closing = false;

  constructor(owner: CountedBackend, id: string, spec: SandboxSpec, files: Map<string, Uint8Array> = new Map()) {
    this.#owner = owner;
    this.id = id;
    this.backend = owner.name;
    this.spec = spec;
    this.capabilities = owner.capabilities;
    this.files = files;
  }

  async exec(): Promise<ExecResult> {
    throw this.#refusal("runs no commands");
  }

  async runCode(): Promise<ExecResult> {
    throw this.#refusal("runs no code");
  }

  async readFile(path: string): Promise<Uint8Array> {
    this.#checkOpen();
    const data = this.files.get(path);
    if (data === undefined) throw new SandboxError("file_not_found", `There is no file ${path}.`);
    return data;
  }

  async writeFile(path: string, data: string | Uint8Array): Promise<void> {
    this.#checkOpen();
    this.files.set(path, typeof data === "string" ? new TextEncoder().encode(data) : data);
  }

  async list(): Promise<SandboxFile[]> {
    this.#checkOpen();
    return [...this.files].map(([path, data]) => ({ path, type: "file", sizeBytes: data.length }));
  }

  async exists(path: string): Promise<boolean> {
    this.#checkOpen();
    return this.files.has(path);
  }

  async remove(path: string): Promise<boolean> {
    this.#checkOpen();
    return this.files.delete(path);
  }

  async snapshot(): Promise<JsonObject> {
    this.#checkOpen();
    const name = `snapshot-${++this.#owner.snapshotsTaken}`;
    this.#owner.snapshots.set(name, new Map(this.files));
    return { name };
  }

  async restore(snapshot: JsonObject): Promise<void> {
    await this.#owner.before("restore");
    this.#checkOpen();
    this.files.clear();
    for (const [path, data] of this.#owner.snapshots.get(snapshot.name as string) ?? []) this.files.set(path, data);
  }

  /** `closed` turns true at the end only, as with a backend that takes its time. */
  async close(): Promise<void> {
    if (this.closing) return;
    this.closing = true;
    await this.#owner.before("close");
    this.#owner.closes += 1;
    this.#owner.live.delete(this.id);
    this.closed = true;
  }

  #checkOpen(): void {
    if (this.closed || this.closing) throw new SandboxError("sandbox_closed", `The sandbox ${this.id} is closed.`);
  }

  #refusal(what: string): SandboxError {
    return new SandboxError("unsupported", `The sandbox ${this.id} ${what}.`);
  }
}

/** A gate that blocks all callers until it is opened. */
export function gate(): { readonly pass: Promise<void>; open(): void } {
  let open: () => void = () => {};
  const pass = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { pass, open };
}
