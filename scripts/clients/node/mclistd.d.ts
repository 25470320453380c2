// SPDX-License-Identifier: BSD-3-Clause
/// <reference types="node" />
import { ConnectionOptions } from 'tls';

export class Error extends globalThis.Error {}
export class Refused extends Error {}
export class Lost extends Error {}

type Text = string | Buffer;
type Change = [verb: 'ladd' | 'ldel' | 'lset' | 'lrequire' | 'lrefuse', key: Text, ...items: Text[]];

/** The verbs; T is what an item of an answer is. */
export class Lists<T = string> {
  constructor(address?: string, options?: {
    timeout?: number; delimiter?: string; encoding?: BufferEncoding | null; login?: string; tls?: ConnectionOptions;
  });
  ladd(key: Text, ...items: Text[]): Promise<boolean>;
  laddt(key: Text, seconds: number, ...items: Text[]): Promise<boolean>;
  ldel(key: Text, ...items: Text[]): Promise<boolean>;
  lset(key: Text, ...items: Text[]): Promise<boolean>;
  lcreate(key: Text, ...items: Text[]): Promise<boolean>;
  laddx(key: Text, ...items: Text[]): Promise<number | null>;
  ldelx(key: Text, ...items: Text[]): Promise<number | null>;
  lput(key: Text, items: Text[], exptime?: number | null, token?: number | null, isNew?: boolean): Promise<boolean>;
  lcopy(src: Text, dst: Text, exptime?: number | null, isNew?: boolean): Promise<number | null>;
  ltouch(key: Text, exptime: number): Promise<boolean>;
  ldrop(key: Text): Promise<boolean>;
  lpurge(key: Text): Promise<number | null>;
  lcompact(key: Text): Promise<boolean>;
  lconvert(key: Text): Promise<number | null>;
  lmigrate(key: Text): Promise<boolean>;
  llease(key: Text, seconds: number): Promise<number | null>;
  lget(key: Text): Promise<T[]>;
  lgets(key: Text): Promise<{ items: T[]; version: number } | null>;
  lgetx(...keys: Text[]): Promise<Map<string, T[]>>;
  lhas(key: Text, ...items: Text[]): Promise<T[]>;
  llen(key: Text): Promise<number>;
  lttl(key: Text, item?: Text | null): Promise<number | null>;
  lrange(key: Text, from: number, to: number): Promise<T[]>;
  lrevrange(key: Text, from: number, to: number): Promise<T[]>;
  lafter(key: Text, item: Text, count: number): Promise<T[] | null>;
  lbefore(key: Text, item: Text, count: number): Promise<T[] | null>;
  lrandom(key: Text, count: number): Promise<T[]>;
  lstat(key: Text): Promise<Record<string, string>>;
  pages(key: Text, count?: number, newest?: boolean): AsyncGenerator<T[]>;
  linter(...keys: Text[]): Promise<T[]>;
  lunion(...keys: Text[]): Promise<T[]>;
  ldiff(...keys: Text[]): Promise<T[]>;
  linterlen(...keys: Text[]): Promise<number | null>;
  lunionlen(...keys: Text[]): Promise<number | null>;
  ldifflen(...keys: Text[]): Promise<number | null>;
  linterstore(dst: Text, ...keys: Text[]): Promise<number | null>;
  lunionstore(dst: Text, ...keys: Text[]): Promise<number | null>;
  ldiffstore(dst: Text, ...keys: Text[]): Promise<number | null>;
  lpop(key: Text, count: number): Promise<T[]>;
  lpopto(src: Text, dst: Text, count: number): Promise<T[] | null>;
  lmove(src: Text, dst: Text, ...items: Text[]): Promise<number | null>;
  ltx(...changes: Change[]): Promise<boolean>;
  pipeline(): Lists<T> & { run(): Promise<unknown[]> };
  close(): void;
}
