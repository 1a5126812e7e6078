//! The macro that makes a table of texts: see [`crate::areas`].

/// A table of texts and its English.
macro_rules! table {
    (
        $(#[$about:meta])*
        $table:ident { $(
            $(#[doc = $doc:literal])+
            $name:ident $( ( $($argument:ident : $kind:ident),+ ) )? = $( [one] $one:literal [other] )? $text:literal;
        )+ }
    ) => {
        $(#[$about])*
        #[derive(Debug)]
        pub struct $table {
            #[allow(dead_code, reason = "not every table has texts with arguments")]
            language: &'static crate::Language,
            $( $name: text_type!($( ($($argument)+) )?), )+
        }

        impl $table {
            pub(crate) const ENGLISH: Self = Self {
                language: &crate::english::LANGUAGE,
                $( $name: text_value!($( ($($kind)+) )? $( [$one] )? $text), )+
            }
            .checked();

            /// The table, whose texts have exactly the arguments that they are called with.
            pub(crate) const fn checked(self) -> Self {
                $( text_check!(self.$name $( ($($argument)+) )?); )+
                self
            }

            /// Adds every text with its id.
            pub(crate) fn add_all(&self, area: &str, all: &mut Vec<crate::Message>) {
                $( {
                    let pattern = text_pattern!(self.$name $( ($($argument)+) )?);
                    all.push(crate::Message {
                        id: crate::message::id(area, stringify!($name)),
                        comment: &[$($doc),+],
                        arguments: &[$($(stringify!($argument)),+)?],
                        one: pattern.one,
                        other: pattern.other,
                    });
                } )+
            }

            /// Adds every form of every text.
            pub(crate) fn add_forms(&self, forms: &mut Vec<&'static str>) {
                $( {
                    let pattern = text_pattern!(self.$name $( ($($argument)+) )?);
                    forms.extend(pattern.one);
                    forms.push(pattern.other);
                } )+
            }

            $( text_method! { $(#[doc = $doc])+ $name $( ( $($argument : $kind),+ ) )? } )+
        }
    };
}

macro_rules! text_type {
    () => { &'static str };
    (($($argument:ident)+)) => { crate::pattern::Pattern };
}

/// Only a number chooses a form.
macro_rules! text_value {
    ($text:literal) => {
        $text
    };
    (($($kind:ident)+) $text:literal) => {
        crate::pattern::Pattern { one: None, other: $text }
    };
    ((Count $($kind:ident)*) [$one:literal] $text:literal) => {
        crate::pattern::Pattern { one: Some($one), other: $text }
    };
    ((Number $($kind:ident)*) [$one:literal] $text:literal) => {
        crate::pattern::Pattern { one: Some($one), other: $text }
    };
}

macro_rules! text_check {
    ($self:ident . $name:ident) => { crate::pattern::check_plain($self.$name) };
    ($self:ident . $name:ident ($($argument:ident)+)) => { $self.$name.check(&[$(stringify!($argument)),+]) };
}

macro_rules! text_pattern {
    ($self:ident . $name:ident) => {
        crate::pattern::Pattern { one: None, other: $self.$name }
    };
    ($self:ident . $name:ident ($($argument:ident)+)) => {
        $self.$name
    };
}

macro_rules! text_method {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[must_use]
        pub const fn $name(&self) -> &'static str {
            self.$name
        }
    };
    ($(#[$doc:meta])+ $name:ident ($argument:ident : Element)) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(&self) -> [&'static str; 2] {
            self.$name.around(stringify!($argument))
        }
    };
    ($(#[$doc:meta])+ $name:ident ($($argument:ident : $kind:ident),+)) => {
        $(#[$doc])+
        #[must_use]
        #[allow(clippy::too_many_arguments, reason = "a text has as many as it names")]
        pub fn $name(&self, $($argument: impl crate::Argument<crate::value::$kind>),+) -> String {
            self.language.fill(self.$name, &[$(stringify!($argument)),+], &[$($argument.value()),+])
        }
    };
}
