create table item (id integer primary key, name text, amount real, note blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000)
insert into item select i, 'name ' || (i * 7919 % 5003), i % 977 / 7.0, zeroblob(i % 300) from n;
create index by_name on item (name, amount);
select count(*), sum(length(note)), round(sum(amount), 3) from item;
select name, count(*), round(avg(amount), 4) from item group by name order by 2 desc, 1 limit 5;
select a.name, count(*) from item a join item b on a.name = b.name and a.id < b.id group by 1 order by 2 desc, 1 limit 3;
update item set name = upper(name) || replace(name, ' ', '_') where id % 3 = 0;
delete from item where id % 5 = 0;
vacuum;
pragma integrity_check;
select group_concat(name, ';') from (select name from item where id < 60);
with recursive f(a, b) as (select 0, 1 union all select b, a + b from f where b < 1e15) select max(b) from f;
