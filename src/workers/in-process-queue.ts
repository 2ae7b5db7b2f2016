import {
  checkListening,
  checkNotification,
  type QueueCounts,
  type Listening,
  type ListenOptions,
  type NotificationHandler,
  type QueueListening,
  type NotifyOptions,
  type RunQueue,
} from "./run-queue.ts";

/** The longest delay of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** A queue for the listeners of this process only. */
export function inProcessQueue(): RunQueue {
  return new InProcessQueue();
}

/** A notification that waits or is being handled. */
interface Notification {
  readonly key: string;
  readonly sessionId: string;
  readonly runner: string;
  readonly priority: number;
}

/** A listener, and how many notifications it handles now. */
interface Listener {
  readonly runners: ReadonlySet<string>;
  readonly handler: NotificationHandler;
  readonly concurrency: number;
  readonly controller: AbortController;
  readonly answering: Set<Promise<void>>;
  paused: boolean;
}

/** See `inProcessQueue`. */
export class InProcessQueue implements RunQueue {
  /** Waiting notifications, in the order of delivery. */
  readonly #waiting: Notification[] = [];
  /** Notifications being handled, by key, each with the one that arrived in the meantime. */
  readonly #active = new Map<string, Notification | null>();
  readonly #later = new Map<string, NodeJS.Timeout>();
  readonly #listeners = new Set<Listener>();
  readonly #subscribers = new Map<string, Set<(data: Uint8Array) => void>>();

  async notify(sessionId: string, options: NotifyOptions): Promise<void> {
    checkNotification(sessionId, options);
    const { runner, at, priority = 0 } = options;
    this.#notifyAt({ key: JSON.stringify([runner, sessionId]), sessionId, runner, priority }, at);
  }

  #notifyAt(notification: Notification, at: Date | undefined): void {
    const delayMs = at === undefined ? 0 : at.getTime() - Date.now();
    if (delayMs > 0) this.#notifyLater(notification, at as Date, delayMs);
    else this.#notifyNow(notification);
  }

  async listen(
    runners: readonly string[],
    handler: NotificationHandler,
    options: ListenOptions = {},
  ): Promise<QueueListening> {
    checkListening(runners, handler, options);
    const { concurrency = 1 } = options;
    const listener: Listener = {
      runners: new Set(runners),
      handler,
      concurrency,
      controller: new AbortController(),
      answering: new Set(),
      paused: false,
    };
    this.#listeners.add(listener);
    this.#answer();
    return {
      pause: () => {
        listener.paused = true;
      },
      resume: () => {
        listener.paused = false;
        this.#answer();
      },
      close: async () => {
        this.#listeners.delete(listener);
        listener.controller.abort();
        await Promise.all(listener.answering);
      },
    };
  }

  async counts(): Promise<QueueCounts> {
    return { waiting: this.#waiting.length, active: this.#active.size, delayed: this.#later.size };
  }

  async publish(topic: string, data: Uint8Array): Promise<void> {
    for (const handle of this.#subscribers.get(topic) ?? []) handle(data);
  }

  async subscribe(topic: string, handle: (data: Uint8Array) => void): Promise<Listening> {
    const subscribers = this.#subscribers.get(topic) ?? new Set();
    this.#subscribers.set(topic, subscribers.add(handle));
    return {
      close: async () => {
        subscribers.delete(handle);
        if (subscribers.size === 0) this.#subscribers.delete(topic);
      },
    };
  }

  /** This queue has no failures of its own. */
  onError(): () => void {
    return () => {};
  }

  async close(): Promise<void> {
    for (const timer of this.#later.values()) clearTimeout(timer);
    this.#later.clear();
    this.#waiting.length = 0;
    this.#subscribers.clear();
  }

  #notifyLater(notification: Notification, at: Date, delayMs: number): void {
    clearTimeout(this.#later.get(notification.key));
    const due = (): void => {
      this.#later.delete(notification.key);
      this.#notifyAt(notification, at);
    };
    this.#later.set(notification.key, setTimeout(due, Math.min(delayMs, TIMER_MS_MAX)).unref());
  }

  #notifyNow(notification: Notification): void {
    if (this.#active.has(notification.key)) this.#active.set(notification.key, notification);
    else if (!this.#waiting.some(({ key }) => key === notification.key)) {
      const before = this.#waiting.findLastIndex(({ priority }) => priority <= notification.priority);
      this.#waiting.splice(before + 1, 0, notification);
      this.#answer();
    }
  }

  /** Delivers waiting notifications to listeners with free capacity. */
  #answer(): void {
    for (const listener of this.#listeners) {
      while (!listener.paused && listener.answering.size < listener.concurrency) {
        const index = this.#waiting.findIndex(({ runner }) => listener.runners.has(runner));
        const [notification] = index < 0 ? [] : this.#waiting.splice(index, 1);
        if (notification === undefined) break;
        this.#begin(listener, notification);
      }
    }
  }

  #begin(listener: Listener, notification: Notification): void {
    this.#active.set(notification.key, null);
    const answered = (async () =>
      listener.handler(notification.sessionId, listener.controller.signal, notification.runner))()
      .catch(() => {})
      .then(() => {
        const again = this.#active.get(notification.key) ?? null;
        this.#active.delete(notification.key);
        listener.answering.delete(answered);
        if (again !== null) this.#notifyNow(again);
        this.#answer();
      });
    listener.answering.add(answered);
  }
}
