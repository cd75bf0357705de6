//! Tests of what a template may make of a row: what is stopped, and what is as without limits.

#![allow(clippy::unwrap_used)]

use arrow::array::{Array, StringArray};

use super::template::{RenderError, Row, Templates};

fn rendered(text: &str, columns: &[(&str, &dyn Array)]) -> Result<String, RenderError> {
    let columns: Vec<(String, &dyn Array)> =
        columns.iter().map(|(name, array)| (name.to_string(), *array)).collect();
    let templates = Templates::new([("t", text)]).map_err(|errors| errors[0].message.clone());
    templates.unwrap().render("t", &Row::of(&columns, 0).unwrap())
}

#[test]
fn a_template_that_doubles_is_stopped() {
    let doubling = |start: &str, step: &str| {
        format!(
            "{{% set ns = namespace(x={start}) %}}{{% for a in range(99) %}}{step}{{% endfor %}}\
             {{{{ ns.x }}}}"
        )
    };
    let large = "text of more than 64 MiB";
    let row = "more than 1024 MiB of text of one row";
    for (text, message) in [
        (doubling("'ab'", "{% set ns.x = ns.x ~ ns.x %}"), large),
        (doubling("'ab'", "{% set ns.x = ns.x + ns.x %}"), large),
        (doubling("'ab'", "{% set ns.x = ns.x * 9 %}"), large),
        (doubling("'ab'", "{% set ns.x = ns.x | replace('b', ns.x) %}"), large),
        (doubling("'ab'", "{% set ns.x = [ns.x, ns.x] | join('-') %}"), large),
        (doubling("'ab'", "{% set ns.x = '%s%s' | format(ns.x, ns.x) %}"), large),
        (doubling("'ab'", "{% set ns.x = [ns.x, ns.x] | string %}"), large),
        (doubling("'ab'", "{% set ns.x = ['', ns.x, ns.x] | sum(start='') %}"), large),
        (doubling("[1]", "{% set ns.x = ns.x + ns.x %}"), large),
        (doubling("[1]", "{% set ns.x = ns.x * 2 | int %}"), large),
        (doubling("[1]", "{% set ns.x = [ns.x, ns.x] %}"), large),
        (doubling("1", "{% set t %}{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = t %}"), large),
        (doubling("['x' * 9999]", "{% set ns.x = ns.x + [ns.x[0] * 99] %}"), large),
        (doubling("['x' * 9999]", "{% set ns.x = ns.x + [(ns.x[0] * 1999) | upper] %}"), row),
        (doubling("'x' * 9999999", "{% set ns.x = ns.x[:] %}{{ ns.x[1:] }}"), row),
        ("{% for a in range(9999) %}".to_string() + &"x".repeat(20_000) + "{% endfor %}", large),
        (
            "{% macro m(x, n) %}{{ m(x ~ x, n - 1) if n else x }}{% endmacro %}{{ m('ab', 90) }}"
                .to_string(),
            large,
        ),
        (
            "{% for a in range(999) %}{% for b in range(99) %}{{ 'x' * 99999 }}{% endfor %}\
             {% endfor %}"
                .to_string(),
            row,
        ),
        (doubling("1", "{% set ns.x = [[ns.x]] %}"), "nested more than 100 deep"),
        ("{% set n = namespace() %}{% set n.n = n %}{{ n }}".to_string(), "nested more than"),
    ] {
        let error = rendered(&text, &[]).unwrap_err();
        assert!(
            matches!(&error, RenderError::Template(said) if said.contains(message)),
            "{text}: {error:?}"
        );
    }
    for text in [
        "\n{{ 'ab' * 100000000 }}",
        "\n{{ ('ab' * 10000 * 10000) | length }}",
        "\n{% if x %}{% set y = [1, 2] * (1000 * 1000 * 1000) %}{% endif %}",
    ] {
        let errors = Templates::new([("t", text)]).map(|_| ()).unwrap_err();
        let start = "line 2: its constants make a text of more than 64 MiB";
        assert!(errors[0].message.starts_with(start), "{errors:?}");
    }
}

#[test]
fn what_limits_a_template_changes_nothing_else() {
    let names = StringArray::from(vec!["a,b,c"]);
    let null = StringArray::from(vec![None::<&str>]);
    let columns: [(&str, &dyn Array); 2] = [("names", &names), ("null", &null)];
    for (text, wanted) in [
        ("{% for n in names | split(',') %}{{ loop.index * 2 ~ n }};{% endfor %}", "2a;4b;6c;"),
        ("{% for n in [] %}x{% else %}none{% endfor %} end", "none end"),
        ("{% set x = [1] + [2, 3] %}{{ x }} {{ x | sum }} {{ 2 + 3 * 4 - 1 }}", "[1, 2, 3] 6 13"),
        ("{{ [1, 2] * 2 }} {{ 3 * 'ab' }} {{ 1.5 + 1 }}", "[1, 2, 1, 2] ababab 2.5"),
        (
            "{% macro m(x, y='-') %}<{{ x }}{{ y }}{{ caller() if caller else '' }}>\
             {% endmacro %}{{ m('a') ~ m('b', y='+') }}{% call m('c') %}in{% endcall %}",
            "<a-><b+><c-in>",
        ),
        (
            "{% for a in [1, [2, [3]]] recursive %}\
             {{ loop(a) if a is sequence else a }}{% endfor %}",
            "123",
        ),
        ("{% if null and names ~ 'x' %}a{% elif names %}{{ names[:1] }}{% endif %}", "a"),
        (
            "{% set t %}{{ names }}!{% endset %}{{ t | upper }}{% filter lower %}A{% endfilter %}",
            "A,B,C!a",
        ),
        (
            "{% set ns = namespace(n=0) %}{% for i in range(9) if i is odd %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}",
            "16",
        ),
        (
            "{% with a = 1, b = 'x' %}{{ a ~ b }}{% endwith %}{{ 'y' if null is defined else 'n' }}",
            "1xn",
        ),
        (
            "{{ 'abab' | replace('b', '..') }}{{ 'ab' | list }}{{ 12 | string | length }}",
            "a..a..['a', 'b']2",
        ),
    ] {
        assert_eq!(rendered(text, &columns).as_deref(), Ok(wanted), "{text}");
    }
    let wanted = RenderError::Row("the column `null` is null".into());
    for text in ["{{ null ~ 'x' }}", "{% set x = null + 'x' %}", "{{ 2 * null }}"] {
        assert_eq!(rendered(text, &columns).unwrap_err(), wanted, "{text}");
    }
    let error = rendered("a\n{% if names %}\n{{ names + 1 }}{% endif %}{{ 1 + 2 }}", &columns[..1])
        .unwrap_err();
    assert!(
        matches!(&error, RenderError::Row(text) if text.ends_with("(line 3 of the template)")),
        "{error:?}"
    );
}
