import { Config, Value } from './index';

/** What a fake is made of; integers are numbers or bigints. */
export type Values = { [name: string]: Value };

/** A Config of these values for tests of applications: no agent, the library's own getters. */
export class Fake extends Config {
  /** Without values nothing is published yet. */
  constructor(values?: Values, version?: string);
  /** Makes the next version; refresh(), wait() and watch() see it. */
  publish(values: Values, version?: string): void;
  /** refresh() and wait() throw EIDRM until the next publish(). */
  withdraw(): void;
  /** Sets age, in milliseconds, and stale. */
  confirm(state?: { age?: number; stale?: boolean }): void;
}

/** Writes a snapshot, in place of the one at the path: Config.open(path) reads it. */
export function write(path: string, values: Values, version?: string): void;
