/** A number when it holds the value exactly, a bigint otherwise. */
export type Integer = number | bigint;
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Value[]
  | { [name: string]: Value };

/** What decode() reads: the names of types, [items], record(members), optional(any of these).
 * A nested object that is missing is as an empty one. */
export type Scalar = 'string' | 'int' | 'number' | 'boolean' | 'duration' | 'size' | 'any';
export interface OptionalShape<S, D> {
  readonly of: S;
  readonly fallback: D;
}
export interface RecordShape<S> {
  readonly of: S;
  readonly record: true;
}
export type Shape =
  | Scalar
  | readonly [Shape]
  | OptionalShape<Shape, unknown>
  | RecordShape<Shape>
  | { readonly [name: string]: Shape };
export type Decoded<S> = S extends 'string' ? string
  : S extends 'int' | 'duration' | 'size' ? Integer
  : S extends 'number' ? number
  : S extends 'boolean' ? boolean
  : S extends 'any' ? Value
  : S extends readonly [infer I] ? Decoded<I>[]
  : S extends OptionalShape<infer O, infer D> ? Decoded<O> | D
  : S extends RecordShape<infer R> ? { [name: string]: Decoded<R> }
  : { -readonly [K in keyof S]: Decoded<S[K]> };
/** Missing or null gives the fallback (undefined when left out). */
export function optional<S extends Shape>(of: S): OptionalShape<S, undefined>;
export function optional<S extends Shape, D>(of: S, fallback: D): OptionalShape<S, D>;
/** A mapping of any names to members of one shape. */
export function record<S extends Shape>(of: S): RecordShape<S>;

/** Values are missing, or are not of the type: all of them. */
export class DecodeError extends Error {
  readonly code: 'ERR_PULLET_DECODE';
  readonly problems: { readonly key: string; readonly what: string }[];
  /** Of the first problem. */
  readonly key: string;
  readonly path: string;
  readonly generation: Integer;
}

export interface OpenOptions {
  /** Succeed before the agent has published anything: empty until there is something. */
  waitFirst?: boolean;
}

export interface WatchOptions {
  signal?: AbortSignal;
}

export interface WaitOptions extends WatchOptions {
  /** Milliseconds; none when left out. */
  timeout?: number;
}

/** What a failing open, refresh or wait throws; after close() everything throws code EBADF. */
export interface PulletError extends Error {
  /**
   * 'ENOENT', 'EIDRM' (withdrawn: the agent publishes it no more), 'EACCES', 'EBADMSG' (damaged),
   * 'EPROTO' (not a snapshot), 'EINVAL', ...
   */
  code: string;
  errno?: number;
  path?: string;
}

/**
 * One version of one configuration, whole, until refresh() or wait() moves it to a newer one.
 * A key is its segments joined with dots, as in "servers.0.host"; a dot inside a segment is
 * written "\." and a backslash "\\". What was read is copied and stays valid.
 */
export class Config implements Iterable<[string, Value]> {
  /** A name, or the path of a snapshot with a '/' in it. */
  static open(nameOrPath: string, options?: OpenOptions): Config;
  constructor(nameOrPath: string, options?: OpenOptions);

  /** The value with the type it has, lists and maps built; the fallback when there is no key. */
  get<V extends Value = Value>(key: string): V | undefined;
  get<T>(key: string, fallback: T): Value | T;
  /** The text of any scalar as it was written. The fallback of these: no key, or another type. */
  getString(key: string): string | undefined;
  getString<T>(key: string, fallback: T): string | T;
  /** An integer, or a string that is one. */
  getInt(key: string): Integer | undefined;
  getInt<T>(key: string, fallback: T): Integer | T;
  /** A number, or a string that is one. */
  getNumber(key: string): number | undefined;
  getNumber<T>(key: string, fallback: T): number | T;
  /** true or false, or such a string. */
  getBoolean(key: string): boolean | undefined;
  getBoolean<T>(key: string, fallback: T): boolean | T;
  /** Milliseconds of a string like "500ms", "10s", "5m", "1h" or "2d". */
  getDuration(key: string): Integer | undefined;
  getDuration<T>(key: string, fallback: T): Integer | T;
  /** Bytes of a string like "64KiB" or "8MiB", or an integer. */
  getSize(key: string): Integer | undefined;
  getSize<T>(key: string, fallback: T): Integer | T;
  /** A key that is read often. */
  key(key: string): Key;
  has(key: string): boolean;
  /** The keys that begin with the prefix, lists and maps among them, in the order of bytes. */
  keys(prefix?: string): string[];
  /** Those keys with their values, all of one version. */
  entries(prefix?: string): IterableIterator<[string, Value]>;
  [Symbol.iterator](): IterableIterator<[string, Value]>;
  /** The whole configuration as nested objects and arrays. */
  toObject<T extends object = { [name: string]: Value }>(): T;
  /**
   * This version, or what is below prefix, as an object of that shape, checked: a value of another
   * type throws DecodeError and is never the default. Keys that the shape has not are left out, or
   * with strict a problem, too.
   */
  decode<S extends Shape>(shape: S, prefix?: string, options?: { strict?: boolean }): Decoded<S>;

  /**
   * Moves to the newest version: was there one? Costs next to nothing when not. Throws EIDRM each
   * time until a withdrawn config comes back.
   */
  refresh(): boolean;
  /**
   * Waits until there is another version and moves to it; false when the timeout has passed. Throws
   * EIDRM once: the next call waits for the config to come back. An abort of the signal throws its
   * reason, an AbortError.
   */
  wait(options?: WaitOptions): Promise<boolean>;
  /** Yields this config after each move to a newer version, until it is closed; throws as wait() does. */
  watch(options?: WatchOptions): AsyncGenerator<Config, void, undefined>;

  /** The generation that is open; 0 when nothing is yet. */
  readonly generation: Integer;
  /** The server's name for it (ETag or revision), or ''. */
  readonly version: string;
  /** Milliseconds since the server last confirmed the newest version; null = not known. */
  readonly age: number | null;
  /** True when that is longer than the agent's longest delay, or not known. */
  readonly stale: boolean;
  /** True while the agent publishes it no more; as it is now, without a refresh. */
  readonly withdrawn: boolean;

  /** Frees the handle, ends waits and watches; a second time does nothing. */
  close(): void;
  // [Symbol.dispose]() is close(), where the runtime has it.
}

/**
 * A key of one Config: looked up once a version, then an answer from memory. It moves with its
 * Config, and throws code EBADF once that is closed. The getters are those of Config.
 */
export class Key {
  private constructor();
  readonly name: string;
  get(): Value | undefined;
  get<T>(fallback: T): Value | T;
  getString(): string | undefined;
  getString<T>(fallback: T): string | T;
  getInt(): Integer | undefined;
  getInt<T>(fallback: T): Integer | T;
  getNumber(): number | undefined;
  getNumber<T>(fallback: T): number | T;
  getBoolean(): boolean | undefined;
  getBoolean<T>(fallback: T): boolean | T;
  getDuration(): Integer | undefined;
  getDuration<T>(fallback: T): Integer | T;
  getSize(): Integer | undefined;
  getSize<T>(fallback: T): Integer | T;
}
