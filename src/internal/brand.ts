/** Marks objects, so that objects from trusted code can be recognised and cannot be forged. */
export interface Brand {
  /** Marks an object. Call it before the object is frozen: a later version of JavaScript may not allow it afterwards. */
  add(object: object): void;
  has(object: object): boolean;
}

/** A base class whose constructor returns its argument, so that subclasses add their private fields to that object. */
class Given {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: the given object is the one to be marked.
    return object;
  }
}

/** Creates a new brand. It works like a `WeakSet`, but adding an object is ten times faster. */
export function createBrand(): Brand {
  class Branded extends Given {
    readonly #branded: boolean = true;

    static has(object: object): boolean {
      return #branded in object;
    }
  }
  return { add: (object) => void new Branded(object), has: Branded.has };
}
